# mpirun's "remote shell": runs a command in the network namespace of a host, under the host's name.
#
#   COMER_TEST_NETWORK=PREFIX sh host.sh 10.99.0.2 COMMAND ...
host=$1
shift
exec ip netns exec "$COMER_TEST_NETWORK-$host" unshare --uts sh -c 'hostname "$0" && exec sh -c "$*"' "$host" "$@"
