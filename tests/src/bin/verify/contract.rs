//! `docs/contract.md`: the reference of the contract, made from `wit/`. The
//! check compares the page with what would be made; `cargo verify --contract`
//! writes it. Every item of the contract has a comment.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use wit_parser::{
    Docs, Function, FunctionKind, Handle, Interface, Resolve, Type, TypeDef, TypeDefKind, TypeId, WorldItem,
};

use crate::Count;

const PAGE: &str = "docs/contract.md";

/// The page is what the contract says.
pub fn check(root: &Path) -> Result<Count> {
    let (page, items) = page(root)?;
    let stored = std::fs::read_to_string(root.join(PAGE)).with_context(|| PAGE.to_owned())?;
    ensure!(stored == page, "{PAGE} is not what `wit/` says; make it anew: cargo verify --contract");
    Ok(Count::check(format!("{PAGE} says what wit/ says, {items} items, all documented")))
}

/// Writes the page.
pub fn write(root: &Path) -> Result<Count> {
    let (page, items) = page(root)?;
    std::fs::write(root.join(PAGE), page)?;
    Ok(Count::check(format!("{PAGE} is written, {items} items")))
}

/// The page and the number of items on it.
fn page(root: &Path) -> Result<(String, usize)> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(root.join("wit"))?;
    let world = resolve.select_world(&[package], None)?;
    let world = &resolve.worlds[world];
    let mut out = Writer { resolve: &resolve, text: String::new(), items: 0, bare: Vec::new() };
    let version = resolve.packages[package].name.to_string();
    writeln!(out.text, "# The contract\n\n`{version}`, made from [`wit/`](../wit) by `cargo verify --contract`.\n")?;
    out.docs(&world.docs, "the world");
    for (heading, items) in
        [("What the host provides", &world.imports), ("What the component provides", &world.exports)]
    {
        writeln!(out.text, "## {heading}\n")?;
        for item in items.values() {
            let WorldItem::Interface { id, .. } = item else { continue };
            let interface = &resolve.interfaces[*id];
            if interface.package == Some(package) {
                out.interface(interface)?;
            }
        }
    }
    if !out.bare.is_empty() {
        bail!("{} items of the contract have no comment: {}", out.bare.len(), out.bare.join(", "));
    }
    let text = out.text.trim_end().to_owned() + "\n";
    Ok((text, out.items))
}

struct Writer<'r> {
    resolve: &'r Resolve,
    text: String,
    items: usize,
    /// Items without a comment.
    bare: Vec<String>,
}

impl Writer<'_> {
    fn docs(&mut self, docs: &Docs, of: &str) {
        self.items += 1;
        match &docs.contents {
            Some(text) => self.text += &format!("{}\n\n", text.trim()),
            None => self.bare.push(of.to_owned()),
        }
    }

    /// A line of a list: a field or a case of an item.
    fn member(&mut self, of: &str, name: &str, docs: &Docs) -> std::fmt::Result {
        self.items += 1;
        if docs.contents.is_none() {
            self.bare.push(format!("{of}.{name}"));
        }
        match &docs.contents {
            Some(text) => writeln!(self.text, "- `{name}`: {}", text.trim().replace('\n', "\n  ")),
            None => writeln!(self.text, "- `{name}`"),
        }
    }

    fn interface(&mut self, interface: &Interface) -> Result<()> {
        let name = interface.name.as_deref().unwrap_or_default();
        writeln!(self.text, "### `{name}`\n")?;
        self.docs(&interface.docs, name);
        for (own, id) in &interface.types {
            let def = &self.resolve.types[*id];
            // What another interface defines is described there.
            if !matches!(def.kind, TypeDefKind::Type(Type::Id(_))) {
                self.definition(name, own, def)?;
            }
        }
        for function in interface.functions.values().filter(|f| f.kind.resource().is_none()) {
            self.function(name, function)?;
        }
        for (own, id) in &interface.types {
            if matches!(self.resolve.types[*id].kind, TypeDefKind::Resource) {
                self.resource(name, own, *id, interface)?;
            }
        }
        Ok(())
    }

    fn definition(&mut self, interface: &str, name: &str, def: &TypeDef) -> Result<()> {
        let kind = match &def.kind {
            TypeDefKind::Resource => return Ok(()),
            TypeDefKind::Type(other) => {
                writeln!(self.text, "#### type `{name}` = `{}`\n", self.ty(other))?;
                self.docs(&def.docs, &format!("{interface}.{name}"));
                return Ok(());
            }
            kind => kind.as_str(),
        };
        writeln!(self.text, "#### {kind} `{name}`\n")?;
        let of = format!("{interface}.{name}");
        self.docs(&def.docs, &of);
        match &def.kind {
            TypeDefKind::Record(record) => {
                for field in &record.fields {
                    self.member(&of, &format!("{}: {}", field.name, self.ty(&field.ty)), &field.docs)?;
                }
            }
            TypeDefKind::Variant(variant) => {
                for case in &variant.cases {
                    let with = case.ty.as_ref().map(|ty| format!("({})", self.ty(ty))).unwrap_or_default();
                    self.member(&of, &format!("{}{with}", case.name), &case.docs)?;
                }
            }
            TypeDefKind::Enum(variants) => {
                for case in &variants.cases {
                    self.member(&of, &case.name, &case.docs)?;
                }
            }
            _ => {}
        }
        writeln!(self.text)?;
        Ok(())
    }

    fn resource(&mut self, interface: &str, name: &str, id: TypeId, of: &Interface) -> Result<()> {
        writeln!(self.text, "#### resource `{name}`\n")?;
        let docs = self.resolve.types[id].docs.clone();
        self.docs(&docs, &format!("{interface}.{name}"));
        for function in of.functions.values().filter(|f| f.kind.resource() == Some(id)) {
            self.function(&format!("{interface}.{name}"), function)?;
        }
        Ok(())
    }

    fn function(&mut self, of: &str, function: &Function) -> Result<()> {
        let own = matches!(function.kind, FunctionKind::Method(_) | FunctionKind::AsyncMethod(_));
        let params = function.params.iter().skip(usize::from(own));
        let params: Vec<String> = params.map(|param| format!("{}: {}", param.name, self.ty(&param.ty))).collect();
        let result = function.result.as_ref().map(|ty| format!(" -> {}", self.ty(ty))).unwrap_or_default();
        writeln!(self.text, "##### `{}`\n", function.item_name())?;
        writeln!(self.text, "```wit\n{}: func({}){result}\n```\n", function.item_name(), params.join(", "))?;
        self.docs(&function.docs, &format!("{of}.{}", function.item_name()));
        Ok(())
    }

    /// A type as it is written.
    fn ty(&self, ty: &Type) -> String {
        let Type::Id(id) = ty else { return primitive(ty).to_owned() };
        let def = &self.resolve.types[*id];
        if let Some(name) = &def.name {
            return name.clone();
        }
        let part = |ty: &Option<Type>| ty.as_ref().map_or("_".into(), |ty| self.ty(ty));
        match &def.kind {
            TypeDefKind::Option(of) => format!("option<{}>", self.ty(of)),
            TypeDefKind::List(of) => format!("list<{}>", self.ty(of)),
            TypeDefKind::Tuple(of) => {
                format!("tuple<{}>", of.types.iter().map(|ty| self.ty(ty)).collect::<Vec<_>>().join(", "))
            }
            TypeDefKind::Result(of) if of.ok.is_none() && of.err.is_none() => "result".into(),
            TypeDefKind::Result(of) if of.err.is_none() => format!("result<{}>", part(&of.ok)),
            TypeDefKind::Result(of) => format!("result<{}, {}>", part(&of.ok), part(&of.err)),
            TypeDefKind::Handle(Handle::Own(id)) => self.ty(&Type::Id(*id)),
            TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", self.ty(&Type::Id(*id))),
            TypeDefKind::Type(of) => self.ty(of),
            other => other.as_str().to_owned(),
        }
    }
}

fn primitive(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        _ => "?",
    }
}
