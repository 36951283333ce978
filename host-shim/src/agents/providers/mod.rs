//! Models behind one trait: an OpenAI-compatible endpoint and the scripted one.

pub mod openai;
mod reply;
pub mod scripted;

use async_trait::async_trait;

use crate::contract::ToolDef;

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
    /// At its length limit: the last part may be cut.
    Length,
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
