//! Writes ONNX files: a graph builder, and the few protocol buffer messages that the format consists of.

use comer::internal::weights::Tensor;

/// Version of the operator set. 17 is the first with `LayerNormalization`.
const OPSET: u64 = 17;
const IR_VERSION: u64 = 8;

/// An attribute of a node.
pub enum Attribute<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Float(f32),
}

/// A dimension of an input or output: a length, or a name where it may change from call to call.
#[derive(Clone, Copy)]
pub enum Dim {
    Fixed(usize),
    Named(&'static str),
}

/// The element type of a tensor, with the format's own numbers.
#[derive(Clone, Copy)]
pub enum ElementType {
    F32 = 1,
    I64 = 7,
}

/// A graph under construction. Values are referred to by name.
#[derive(Default)]
pub struct Graph {
    nodes: Message,
    initializers: Message,
    inputs: Message,
    outputs: Message,
    count: usize,
}

impl Graph {
    /// Adds a node with one output and returns the output's name.
    pub fn node(&mut self, kind: &str, inputs: &[&str], attributes: &[(&str, Attribute)]) -> String {
        let output = format!("v{}", self.count);
        self.node_named(kind, inputs, &output, attributes);
        output
    }

    /// Adds a node whose output has a given name.
    pub fn node_named(
        &mut self,
        kind: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Attribute)],
    ) {
        self.count += 1;
        let mut node = Message::default();
        inputs.iter().for_each(|input| node.text(1, input));
        node.text(2, output);
        node.text(4, kind);
        for (name, value) in attributes {
            let mut attribute = Message::default();
            attribute.text(1, name);
            let kind = match value {
                Attribute::Float(value) => {
                    attribute.float(2, *value);
                    1
                }
                Attribute::Int(value) => {
                    attribute.integer(3, *value as u64);
                    2
                }
                Attribute::Ints(values) => {
                    values.iter().for_each(|&value| attribute.integer(8, value as u64));
                    7
                }
            };
            attribute.integer(20, kind);
            node.message(5, &attribute);
        }
        self.nodes.message(1, &node);
    }

    /// Adds a constant tensor of f32 and returns its name.
    pub fn constant(&mut self, tensor: &Tensor) -> String {
        let bytes: Vec<u8> = tensor.data.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.initializer(&tensor.shape, ElementType::F32, &bytes)
    }

    /// Adds a constant vector of f32.
    pub fn floats(&mut self, values: &[f32]) -> String {
        self.constant(&Tensor { shape: vec![values.len()], data: values.to_vec() })
    }

    /// Adds a constant number.
    pub fn float(&mut self, value: f32) -> String {
        self.constant(&Tensor { shape: vec![], data: vec![value] })
    }

    /// Adds a constant vector of whole numbers.
    pub fn ints(&mut self, values: &[i64]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.initializer(&[values.len()], ElementType::I64, &bytes)
    }

    /// Adds a constant whole number.
    pub fn int(&mut self, value: i64) -> String {
        self.initializer(&[], ElementType::I64, &value.to_le_bytes())
    }

    fn initializer(&mut self, shape: &[usize], kind: ElementType, bytes: &[u8]) -> String {
        let name = format!("c{}", self.count);
        self.count += 1;
        let mut tensor = Message::default();
        shape.iter().for_each(|&length| tensor.integer(1, length as u64));
        tensor.integer(2, kind as u64);
        tensor.text(8, &name);
        tensor.bytes(9, bytes);
        self.initializers.message(5, &tensor);
        name
    }

    /// Declares an input.
    pub fn input(&mut self, name: &str, kind: ElementType, shape: &[Dim]) {
        self.inputs.message(11, &value_info(name, kind, shape));
    }

    /// Declares an output.
    pub fn output(&mut self, name: &str, kind: ElementType, shape: &[Dim]) {
        self.outputs.message(12, &value_info(name, kind, shape));
    }

    /// The whole file. `metadata` are pairs of key and value.
    pub fn into_model(self, name: &str, metadata: &[(&str, &str)]) -> Vec<u8> {
        let mut graph = self.nodes;
        graph.text(2, name);
        for part in [self.initializers, self.inputs, self.outputs] {
            graph.0.extend_from_slice(&part.0);
        }
        let mut opset = Message::default();
        opset.text(1, "");
        opset.integer(2, OPSET);
        let mut model = Message::default();
        model.integer(1, IR_VERSION);
        model.text(2, "comer");
        model.text(3, env!("CARGO_PKG_VERSION"));
        model.message(7, &graph);
        model.message(8, &opset);
        for (key, value) in metadata {
            let mut entry = Message::default();
            entry.text(1, key);
            entry.text(2, value);
            model.message(14, &entry);
        }
        model.0
    }
}

fn value_info(name: &str, kind: ElementType, shape: &[Dim]) -> Message {
    let mut dims = Message::default();
    for dim in shape {
        let mut message = Message::default();
        match dim {
            Dim::Fixed(length) => message.integer(1, *length as u64),
            Dim::Named(name) => message.text(2, name),
        }
        dims.message(1, &message);
    }
    let mut tensor = Message::default();
    tensor.integer(1, kind as u64);
    tensor.message(2, &dims);
    let mut kind = Message::default();
    kind.message(1, &tensor);
    let mut info = Message::default();
    info.text(1, name);
    info.message(2, &kind);
    info
}

/// A protocol buffer message: fields one after the other, each a tag and its value.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn integer(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.varint(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    fn message(&mut self, field: u64, value: &Message) {
        self.bytes(field, &value.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_encoded_as_the_protocol_buffer_documentation_shows() {
        let mut message = Message::default();
        message.integer(1, 150);
        message.text(2, "testing");
        assert_eq!(message.0, b"\x08\x96\x01\x12\x07testing");
    }

    #[test]
    fn negative_integers_have_ten_bytes() {
        let mut message = Message::default();
        message.integer(3, -1i64 as u64);
        assert_eq!(message.0.len(), 1 + 10);
    }
}
