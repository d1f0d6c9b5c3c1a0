-- What a 404 says: of a path that other servers have, what it is there and what works here.
--
-- The words become the message of an error object by errors.lua.

local METADATA = "ovchat"
local LONGEST_PATH = 200

local CHATS = "Chat completions are at POST $v/chat/completions."
local RESPONSES = "Responses are at POST $v/responses."
local TEXTS = "Text completions are at POST $v/completions."
local MESSAGES = "Messages are at POST $v/messages."
local EMBEDDINGS = "Embeddings are at POST $v/embeddings."
local RANKINGS = "Documents are ranked at POST $v/rerank."
local MODELS = "Models are at GET $v/models."
local NAMED_AT_START = "Models are named when the server is started."
local OLLAMA = "is Ollama's, whose API is not served here"
local LLAMA_CPP = "is llama.cpp's, whose own API is not served here"
local TGI = "is text-generation-inference's, whose own API is not served here"
-- By the path without its version. The first match counts. "$v" is the caller's version, "%1" the
-- path without its own.
local ELSEWHERE = {
  -- The base URL of a client.
  { "^/v[13]/(.+)$", "names the version twice", "It is %1: the client adds the path to its base URL." },
  { "^/v2/rerank$", "names the version twice", "It is %1: Cohere's client adds the path to its base URL." },
  { "^/chat/completions/.", "has a path after that of chat completions", "The client's base URL has to end with $v." },
  -- OpenAI.
  { "^/responses/.+/cancel$", "ends a response in the background, which is not served here", RESPONSES },
  { "^/responses/compact$", "makes a conversation shorter, which is not done here", RESPONSES },
  { "^/conversations", "is for conversations, which are not kept here", "previous_response_id continues a response." },
  { "^/moderations$", "is for moderations, which are not served here", CHATS },
  { "^/images/", "makes images, which is not served here", CHATS },
  { "^/audio/", "is for speech, which is not served here", CHATS },
  { "^/realtime", "is OpenAI's Realtime API, which is not served here", CHATS },
  { "^/files", "is for files, which are not kept here", CHATS },
  { "^/batches", "is for batches, which are not served here", CHATS },
  { "^/fine_tuning/", "is for fine-tuning, which is not done here", CHATS },
  { "^/assistants", "is OpenAI's Assistants API, which is not served here", CHATS },
  { "^/threads", "is OpenAI's Assistants API, which is not served here", CHATS },
  { "^/vector_stores", "is for vector stores, which are not kept here", CHATS },
  { "^/openai/deployments/.+/embeddings$", "is Azure's, whose paths are not served here", EMBEDDINGS },
  { "^/openai/deployments/", "is Azure's, whose paths are not served here", CHATS },
  -- Anthropic.
  { "^/messages/batches", "is for batches, which are not served here", MESSAGES },
  { "^/messages/msg_", "is for messages that are kept, and none are here", MESSAGES },
  { "^/[%w_-]+/v1/messages/", "has a path after that of messages", "Tokens are counted at POST /v1/messages/count_tokens." },
  { "^/complete$", "is Anthropic's text completion, which is not served here", MESSAGES },
  -- vLLM, Cohere and Jina.
  { "^/pooling$", "is vLLM's, which is not served here", EMBEDDINGS },
  { "^/embed$", "makes embeddings in another form than OpenAI's, which is not served here", EMBEDDINGS },
  { "^/classify$", "classifies texts, which is not served here", CHATS },
  { "^/metrics$", "is for metrics, which have a port of their own", "--metrics-port sets it, and GET /ovchat/v1/models/{id} says how busy a model is." },
  { "^/ping$", "is a health probe elsewhere", "Here they are GET /health and GET /v2/health/live." },
  { "^/healthz$", "is a health probe elsewhere", "Here they are GET /health and GET /v2/health/live." },
  { "^/livez$", "is a health probe elsewhere", "Here it is GET /v2/health/live." },
  { "^/readyz$", "is a health probe elsewhere", "Here it is GET /v2/health/ready." },
  { "^/invocations$", "is SageMaker's, which is not served here", CHATS },
  { "^/load_lora_adapter$", "loads adapters, which is not served here", NAMED_AT_START },
  { "^/unload_lora_adapter$", "unloads adapters, which is not served here", NAMED_AT_START },
  -- Ollama.
  { "^/api/generate$", OLLAMA, TEXTS },
  { "^/api/tags$", OLLAMA, MODELS },
  { "^/api/embed", OLLAMA, EMBEDDINGS },
  { "^/api/", OLLAMA, CHATS },
  -- llama.cpp, text-generation-inference.
  { "^/completion$", LLAMA_CPP, TEXTS },
  { "^/infill$", LLAMA_CPP, TEXTS },
  { "^/embedding$", LLAMA_CPP, EMBEDDINGS },
  { "^/reranking$", LLAMA_CPP, RANKINGS },
  { "^/props$", LLAMA_CPP, MODELS },
  { "^/generate", TGI, CHATS },
  { "^/info$", TGI, MODELS },
  -- KServe, OVMS.
  { "^/models/.+/infer$", "is KServe's inference on tensors, which is not served here", CHATS },
  { "^/models/.+/generate", "is KServe's generation, which is not served here", CHATS },
  { "^/models/.+/load$", "is KServe's repository of models, which is not served here", NAMED_AT_START },
  { "^/models/.+/unload$", "is KServe's repository of models, which is not served here", NAMED_AT_START },
  { "^/repository/", "is KServe's repository of models, which is not served here", NAMED_AT_START },
  { "^/config/reload$", "is OVMS's, which is not served here", NAMED_AT_START },
  -- Providers of models.
  { "^/[%w_-]+/v3/", "begins with a provider, whose paths go on with /v1", "Chat completions are at POST /{provider}/v1/chat/completions." },
  -- gRPC without its content-type.
  { "^/[%w_.]+%.[%w_]+Service/%w+$", "is a gRPC method", "Call it with gRPC, on this port as well." },
}
-- Served with a version before them only, or with another than the caller's.
local VERSIONED = { "^/messages$", "^/messages/count_tokens$", "^/responses$", "^/responses/", "^/chat/completions$", "^/completions$", "^/embeddings$", "^/models$", "^/models/" }

local function message(path)
  local version, rest = path:match("^(/v%d+)(/.*)$")
  local asked, known = rest or path, version == "/v1" or version == "/v3"
  local served = known and version or "/v3"
  asked = asked:gsub("(.)/$", "%1")
  for _, entry in ipairs(ELSEWHERE) do
    local pattern, what, works = entry[1], entry[2], entry[3]
    if asked:find(pattern) then
      works = works:gsub("%$v", served):gsub("%%1", function() return asked end)
      return string.format("%s %s. %s", path, what, works)
    end
  end
  for _, pattern in ipairs(VERSIONED) do
    if not known and asked:find(pattern) then
      return string.format("%s is served as /v3%s and /v1%s.", path, asked, asked)
    end
  end
  return string.format(
    "Unknown path %s. Chat completions are at POST %s/chat/completions, models at GET %s/models.",
    path, served, served
  )
end

function envoy_on_request(handle)
  local path = handle:headers():get(":path"):match("^[^?]*"):sub(1, LONGEST_PATH)
  handle:streamInfo():dynamicMetadata():set(METADATA, "not_found", message(path))
end
