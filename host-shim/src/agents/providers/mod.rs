//! Models behind one trait. A kind of endpoint is one file, with its settings,
//! and one line in [`ModelConfig`].

pub mod openai;
mod reply;
pub mod scripted;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;

use crate::contract::ToolDef;

/// The settings of one kind of endpoint, and what the program needs of it.
#[async_trait]
pub trait Provider: std::fmt::Debug + Send + Sync {
    /// Checks everything that can be checked without a file or the network.
    fn validate(&self) -> Result<(), Mistake>;
    /// Makes relative paths relative to the folder of the configuration file.
    fn resolve_paths(&mut self, _base: &Path) {}
    /// The agents and tools that the settings name; each must exist.
    fn names(&self) -> Vec<NameInUse> {
        Vec::new()
    }
    /// A client of the endpoint. Fails if a file or the machine's set-up cannot
    /// be read; nothing is sent.
    fn open(&self) -> anyhow::Result<Arc<dyn Model>>;
    /// For `doctor`: whether it can be used, and what was found, in a sentence.
    /// `ask`: the endpoint may be asked for a word.
    async fn probe(&self, ask: bool) -> Result<String, String>;
}

/// A wrong setting of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The field under `[models.NAME]`.
    pub field: String,
    pub message: String,
}

impl Mistake {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// A name in a model's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameInUse {
    /// The field under `[models.NAME]`.
    pub field: String,
    pub names: Named,
}

/// What a name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    Agent(String),
    Tool(String),
}

macro_rules! providers {
    ($($(#[$doc:meta])* $kind:ident($settings:ty),)*) => {
        /// One model, by the kind of its endpoint: `kind` under `[models.NAME]`.
        #[derive(Clone, Debug, Deserialize)]
        #[serde(tag = "kind", rename_all = "lowercase")]
        pub enum ModelConfig {
            $($(#[$doc])* $kind($settings),)*
        }

        impl ModelConfig {
            pub fn provider(&self) -> &dyn Provider {
                match self { $(Self::$kind(settings) => settings,)* }
            }

            pub fn provider_mut(&mut self) -> &mut dyn Provider {
                match self { $(Self::$kind(settings) => settings,)* }
            }
        }
    };
}

providers! {
    /// A chat-completions endpoint.
    Openai(openai::OpenAiConfig),
    /// Rules instead of a model: no network.
    Scripted(scripted::ScriptedConfig),
}

/// One model call. Nothing in it is remembered between calls.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// Name of the agent.
    pub agent: String,
    /// The run, and how many model calls it has made before this one.
    pub run: String,
    pub call: u32,
    pub instructions: String,
    pub messages: Vec<ModelMessage>,
    pub tools: Vec<ToolDef>,
}

/// A message of the model's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelMessage {
    Human {
        text: String,
    },
    Assistant {
        text: String,
        calls: Vec<ModelCall>,
    },
    /// The result of the call with this id.
    Tool {
        call: String,
        name: String,
        text: String,
    },
}

/// A tool call as it is replayed: the id is the host's, the arguments are a
/// JSON object in compact form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelReply {
    pub text: String,
    pub calls: Vec<RawCall>,
    pub finish: Finish,
}

/// A tool call as the model wrote it; the arguments may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawCall {
    pub name: String,
    pub arguments: String,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// By itself, or with tool calls.
    #[default]
    Stop,
    /// The endpoint cut the reply, at its length limit or by a filter.
    Cut,
}

/// Why a model call failed. The texts hold no key, address or reply text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The input has to be smaller.
    #[error("context_too_long: the model endpoint says that the input is too long")]
    ContextTooLong,
    /// Temporary, and all attempts are used up.
    #[error("provider_unavailable: {0}")]
    Unavailable(String),
    /// Repeating the same call would not help.
    #[error("provider_refused: {0}")]
    Refused(String),
    /// The configuration or the script is wrong.
    #[error("provider_misconfigured: {0}")]
    Misconfigured(String),
}

/// A model. A call may be dropped at any time; it has no other effect.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError>;
}
