//! A reader of the pickles that PyTorch writes. It builds values and calls nothing.
//!
//! Every value lives in one list and refers to others by their place there, and text stays where it is in the pickle. So
//! memory is bounded by the pickle's size, and a value that holds itself does no harm.

use std::collections::HashMap;

/// A value's place in its [`Pickle`].
pub(super) type Id = u32;

/// A value of a pickle.
#[derive(Debug)]
pub(super) enum Value<'a> {
    /// Python's `None`.
    Nothing,
    Flag(bool),
    Integer(i64),
    Float(f64),
    Text(&'a str),
    Bytes,
    /// A tuple, a list or a set.
    Sequence(Vec<Id>),
    Dictionary(Vec<(Id, Id)>),
    /// A class or function.
    Global(Global<'a>),
    /// What `persistent_id` stands for: PyTorch's storages.
    Persistent(Id),
    /// An object made by calling a global with arguments: not made, only noted.
    Made {
        callable: Global<'a>,
        arguments: Id,
    },
}

/// The name of a class or function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Global<'a> {
    pub(super) module: &'a str,
    pub(super) name: &'a str,
}

/// The values of a pickle and which of them is the whole.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    values: Vec<Value<'a>>,
    root: Id,
}

/// More values than any checkpoint has (one with its optimiser has some ten thousand); a pickle that goes on is refused
/// before it fills the memory.
const MOST_VALUES: usize = 1 << 18;
/// Longest name of a class or function.
const LONGEST_NAME: usize = 512;

/// Modules whose objects stand in checkpoints. Objects of any other are a reason to refuse the file.
const KNOWN_MODULES: [&str; 5] = ["torch", "collections", "pytorch_lightning", "lightning", "argparse"];

impl<'a> Pickle<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let mut machine = Machine { rest: bytes, ..Machine::default() };
        loop {
            let at = bytes.len() - machine.rest.len();
            let opcode = machine.byte()?;
            if opcode == b'.' {
                let root = machine.pop()?;
                return Ok(Self { values: machine.values, root });
            }
            machine.step(opcode).map_err(|reason| format!("{reason} (at byte {at} of the pickle)"))?;
            let lengths =
                [machine.values.len(), machine.stack.len(), machine.marks.len(), machine.memo.len()];
            if lengths.iter().any(|&length| length >= MOST_VALUES) {
                return Err(format!("its pickle has {MOST_VALUES} values or more"));
            }
        }
    }

    pub(super) fn root(&self) -> &Value<'a> {
        self.value(self.root)
    }

    pub(super) fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id as usize]
    }

    /// The value of `key` in a dictionary with text keys.
    pub(super) fn get(&self, dictionary: &Value, key: &str) -> Option<&Value<'a>> {
        let Value::Dictionary(pairs) = dictionary else { return None };
        let found = pairs
            .iter()
            .rev()
            .find(|(name, _)| matches!(self.value(*name), Value::Text(text) if *text == key));
        found.map(|&(_, value)| self.value(value))
    }
}

#[derive(Default)]
struct Machine<'a> {
    rest: &'a [u8],
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl<'a> Machine<'a> {
    fn step(&mut self, opcode: u8) -> Result<(), String> {
        match opcode {
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'}' => self.push(Value::Dictionary(Vec::new())),
            b']' | b')' | 0x8f => self.push(Value::Sequence(Vec::new())),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            b'q' => {
                let slot = u32::from(self.byte()?);
                self.remember(slot)?;
            }
            b'r' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.remember(slot)?;
            }
            0x94 => self.remember(self.memo.len() as u32)?,
            b'h' => {
                let slot = u32::from(self.byte()?);
                self.recall(slot)?;
            }
            b'j' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.recall(slot)?;
            }
            b'N' => self.push(Value::Nothing),
            0x88 => self.push(Value::Flag(true)),
            0x89 => self.push(Value::Flag(false)),
            b'J' => {
                let value = i32::from_le_bytes(self.array()?);
                self.push(Value::Integer(value.into()));
            }
            b'K' => {
                let value = self.byte()?;
                self.push(Value::Integer(value.into()));
            }
            b'M' => {
                let value = u16::from_le_bytes(self.array()?);
                self.push(Value::Integer(value.into()));
            }
            0x8a => {
                let count = usize::from(self.byte()?);
                let value = long(self.take(count)?)?;
                self.push(Value::Integer(value));
            }
            b'G' => {
                let value = f64::from_be_bytes(self.array()?);
                self.push(Value::Float(value));
            }
            b'X' | b'T' => {
                let count = self.length4()?;
                self.text(count)?;
            }
            0x8c | b'U' => {
                let count = usize::from(self.byte()?);
                self.text(count)?;
            }
            0x8d => {
                let count = self.length8()?;
                self.text(count)?;
            }
            b'C' => {
                let count = usize::from(self.byte()?);
                self.bytes(count)?;
            }
            b'B' => {
                let count = self.length4()?;
                self.bytes(count)?;
            }
            0x8e => {
                let count = self.length8()?;
                self.bytes(count)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(module, name)?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (&Value::Text(module), &Value::Text(name)) = (self.value(module), self.value(name))
                else {
                    return Err("a global's name is not text".into());
                };
                self.global(module, name)?;
            }
            b't' | b'l' => {
                let items = self.pop_to_mark()?;
                self.push(Value::Sequence(items));
            }
            0x85..=0x87 => {
                let count = usize::from(opcode - 0x84);
                let mut items = (0..count).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
                items.reverse();
                self.push(Value::Sequence(items));
            }
            b'd' => {
                self.push(Value::Dictionary(Vec::new()));
                let dictionary = self.pop()?;
                let items = self.pop_to_mark()?;
                self.set_items(dictionary, &items)?;
                self.stack.push(dictionary);
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set_items(self.top()?, &[key, value])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set_items(self.top()?, &items)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' | 0x90 => {
                let items = self.pop_to_mark()?;
                self.append(&items)?;
            }
            b'R' | 0x81 => {
                let (arguments, callable) = (self.pop()?, self.pop()?);
                let made = self.call(callable, arguments)?;
                self.push(made);
            }
            b'b' => drop(self.pop()?),
            b'Q' => {
                let id = self.pop()?;
                self.push(Value::Persistent(id));
            }
            other => return Err(format!("opcode {other:#04x} has no place in a tensor dictionary")),
        }
        Ok(())
    }

    /// Notes what a call would make. Only an ordered dictionary is made: an empty one.
    fn call(&self, callable: Id, arguments: Id) -> Result<Value<'a>, String> {
        let &Value::Global(global) = self.value(callable) else {
            return Err("it calls what is not a function".into());
        };
        let Global { module, name } = global;
        let known = |known: &&str| {
            module.strip_prefix(*known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !KNOWN_MODULES.iter().any(known) && (module, name) != ("builtins", "set") {
            return Err(format!(
                "it calls {module}.{name}, which has no place in a tensor dictionary; nothing was executed"
            ));
        }
        Ok(match (module, name) {
            ("collections", "OrderedDict") => Value::Dictionary(Vec::new()),
            _ => Value::Made { callable: global, arguments },
        })
    }

    fn global(&mut self, module: &'a str, name: &'a str) -> Result<(), String> {
        let length = module.len() + name.len();
        if length > LONGEST_NAME {
            return Err(format!("a global's name has {length} bytes, expected at most {LONGEST_NAME}"));
        }
        self.push(Value::Global(Global { module, name }));
        Ok(())
    }

    fn set_items(&mut self, target: Id, items: &[Id]) -> Result<(), String> {
        match &mut self.values[target as usize] {
            Value::Dictionary(pairs) if items.len().is_multiple_of(2) => {
                pairs.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])));
                Ok(())
            }
            Value::Made { .. } => Ok(()),
            _ => Err("it sets items of what is not a dictionary".into()),
        }
    }

    fn append(&mut self, items: &[Id]) -> Result<(), String> {
        let target = self.top()?;
        match &mut self.values[target as usize] {
            Value::Sequence(list) => list.extend_from_slice(items),
            Value::Made { .. } => {}
            _ => return Err("it appends to what is not a list".into()),
        }
        Ok(())
    }

    fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id as usize]
    }

    fn push(&mut self, value: Value<'a>) {
        // There are fewer than MOST_VALUES.
        self.stack.push(self.values.len() as Id);
        self.values.push(value);
    }

    /// Takes the topmost value, never one below the last mark.
    fn pop(&mut self) -> Result<Id, String> {
        let bottom = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= bottom {
            return Err("it takes from an empty stack".into());
        }
        self.stack.pop().ok_or_else(|| "it takes from an empty stack".into())
    }

    fn top(&self) -> Result<Id, String> {
        self.stack.last().copied().ok_or_else(|| "it takes from an empty stack".into())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().ok_or("it lacks a mark")?;
        Ok(self.stack.split_off(mark))
    }

    fn remember(&mut self, slot: u32) -> Result<(), String> {
        let top = self.top()?;
        self.memo.insert(slot, top);
        Ok(())
    }

    fn recall(&mut self, slot: u32) -> Result<(), String> {
        let id = self.memo.get(&slot).ok_or_else(|| format!("it recalls {slot}, which was never stored"))?;
        self.stack.push(*id);
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or("it ends in the middle")?;
        self.rest = tail;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (head, tail) = self.rest.split_first_chunk().ok_or("it ends in the middle")?;
        self.rest = tail;
        Ok(*head)
    }

    fn length4(&mut self) -> Result<usize, String> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn length8(&mut self) -> Result<usize, String> {
        usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|_| "a length overflows".into())
    }

    fn text(&mut self, count: usize) -> Result<(), String> {
        let text = std::str::from_utf8(self.take(count)?).map_err(|_| "a text is not UTF-8")?;
        self.push(Value::Text(text));
        Ok(())
    }

    fn bytes(&mut self, count: usize) -> Result<(), String> {
        self.take(count)?;
        self.push(Value::Bytes);
        Ok(())
    }

    fn line(&mut self) -> Result<&'a str, String> {
        let end = self.rest.iter().position(|&byte| byte == b'\n').ok_or("it ends in the middle")?;
        let line = self.take(end + 1)?;
        std::str::from_utf8(&line[..end]).map_err(|_| "a name is not UTF-8".into())
    }
}

/// A little-endian two's complement integer of up to eight bytes.
fn long(bytes: &[u8]) -> Result<i64, String> {
    if bytes.len() > 8 {
        return Err(format!("an integer of {} bytes, expected at most 8", bytes.len()));
    }
    let fill = if bytes.last().is_some_and(|&byte| byte >= 0x80) { 0xff } else { 0 };
    let mut whole = [fill; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    Ok(i64::from_le_bytes(whole))
}
