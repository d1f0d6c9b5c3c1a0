-- The last hand on every REST response: error bodies, HEAD, and the headers of a stream. And the
-- first on a request: HEAD, and a slash at the end of the path.
--
-- Stands before grpc_json_transcoder in the filter chain, so it sees requests before they become
-- gRPC and responses after they have become HTTP again; and before all that may refuse a request.
-- Native gRPC has its own route, where this filter is turned off. Nothing here reads a body it does
-- not replace: a stream that has begun passes as it is produced.

local METADATA = "ovchat"

-- What Anthropic calls errors, by status.
local ANTHROPIC = {
  ["401"] = "authentication_error",
  ["403"] = "permission_error",
  ["404"] = "not_found_error",
  ["413"] = "request_too_large",
  ["429"] = "rate_limit_error",
  ["503"] = "overloaded_error",
  ["504"] = "timeout_error",
}
-- The bodies of errors that do not come from the server's code, by API, and their statuses where
-- those are other ones. `message` is a JSON string literal.
local FORMATS = {
  anthropic = function(failure)
    local kind = ANTHROPIC[failure.status]
      or (failure.type == "server_error" and "api_error" or failure.type)
    local body = '{"type":"error","error":{"type":"%s","message":%s},"request_id":%s}'
    local text = string.format(body, kind, failure.message, failure.request_id)
    -- It knows no 503.
    return text, failure.status == "503" and "529"
  end,
  openai = function(failure)
    return string.format(
      '{"error":{"message":%s,"type":"%s","param":null,"code":"%s"}}',
      failure.message, failure.type, failure.code
    )
  end,
}
-- The APIs by patterns of their paths, or by what their clients send to wrong paths, too. Of all
-- else it is OpenAI's.
local APIS = { { path = "/v[13]/messages", header = "anthropic-version", format = "anthropic" } }

-- Envoy's own replies, code and message: by the name of their route, by Envoy's word for them (the
-- details up to a brace), or by their status. "$name" stands for a fact; see envoys_facts.
local REPLIES = {
  ["bad-deadline"] = {
    "invalid_value",
    "The header grpc-timeout is no duration: at most 8 digits and one of H, M, S, m, u and n, such as 30S.",
  },
  ["post-encoded"] = {
    "unsupported_content_encoding",
    "The body has the content-encoding $encoding. Send it uncompressed, without that header.",
  },
  -- From envoy_on_request.
  lua_response = {
    "invalid_value",
    "A header has other characters than visible ASCII and spaces. Encode what it says, such as in base64.",
  },
  upgrade_failed = {
    "upgrade_not_supported",
    'Connections cannot be upgraded here. Answers are streamed as server-sent events: send "stream": true.',
    -- Envoy's is 403, but nothing is forbidden.
    status = "400",
  },
  -- What the server said of the request's key.
  ext_authz_denied = { "invalid_api_key", "$body" },
  -- From the transcoder, which says what it could not read.
  grpc_json_transcode_failure = { "invalid_request", "Invalid request: $body" },
  -- A limit of this proxy, not a server that is away: see circuit_breakers.
  overload = { "overloaded", "Too many requests at once. Try again shortly." },
  ["400"] = { "invalid_request", "This is not a well-formed HTTP request: $details." },
  ["404"] = { "not_found", "$unknown" },
  ["405"] = { "method_not_allowed", "Method $method is not allowed for $path. Allowed are: $allow." },
  ["408"] = { "timeout", "The request did not arrive in time. Send it again on a new connection." },
  ["413"] = {
    "request_too_large",
    "The request body is larger than the $limit bytes that this server accepts.",
  },
  ["415"] = {
    "unsupported_media_type",
    "The body must be JSON. Send it with the content-type application/json.",
  },
  ["431"] = {
    "headers_too_large",
    "The request headers are more than this server accepts: 60 KiB, or 100 of them.",
  },
  ["501"] = {
    "unsupported_transfer_encoding",
    "The body's transfer-encoding is not supported. Send it chunked, or with a content-length.",
  },
  ["503"] = {
    "service_unavailable",
    "The server does not answer: it is starting, stopping or down. Try again shortly.",
  },
  ["504"] = { "timeout", "The answer did not come in time." },
  ["4xx"] = { "invalid_request", "The request was refused: $body" },
  ["5xx"] = { "internal_error", "The request could not be passed on: $body" },
}
-- What envoy.yaml says of Envoy's own replies: headers that begin with this.
local REPLY = "x-ovchat-reply-"
local FACTS = { "details", "flags", "method", "path", "encoding", "limit" }

-- What clients test for where the server said no more than a gRPC status.
local CODES = {
  ["400"] = "invalid_request",
  ["401"] = "unauthenticated",
  ["403"] = "permission_denied",
  ["404"] = "not_found",
  ["409"] = "conflict",
  ["429"] = "rate_limit_exceeded",
  ["499"] = "cancelled",
  ["501"] = "not_implemented",
  ["503"] = "service_unavailable",
  ["504"] = "timeout",
}

-- What clients have no use for: REST says these things in its own words.
local INTERNAL = {
  "x-ovchat-error", "x-ovchat-status", "grpc-status", "grpc-message", "grpc-status-details-bin",
}

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

-- `text` as a JSON string literal.
local function quote(text)
  local escaped = text:gsub('[%c"\\]', function(character)
    return ESCAPES[character] or string.format("\\u%04x", character:byte())
  end)
  return '"' .. escaped .. '"'
end

-- The string literal that `json` has at `start`, quotes included.
local function literal(json, start)
  local position = start + 1
  while true do
    local stop = json:find('["\\]', position)
    if stop == nil then
      return nil
    end
    if json:sub(stop, stop) == '"' then
      return json:sub(start, stop)
    end
    -- A backslash and what it escapes.
    position = stop + 2
  end
end

-- The message of a gRPC status, as a JSON string literal; nil where the reply is none.
local function status_message(headers, body)
  if headers:get("grpc-status") ~= nil then
    -- The transcoder left it alone: it holds details of a type that is not in the descriptor.
    local message = (headers:get("grpc-message") or ""):gsub("%%(%x%x)", function(hex)
      return string.char(tonumber(hex, 16))
    end)
    return quote(message)
  end
  -- google.rpc.Status as the transcoder prints it; Envoy's own replies begin with "error".
  if body:sub(1, 8) ~= '{"code":' then
    return nil
  end
  local _, start = body:find('^{"code":%d+,"message":"')
  return start and literal(body, start) or '""'
end

-- What was noted of the request.
local function notes(handle)
  return handle:streamInfo():dynamicMetadata():get(METADATA) or {}
end

local function kind_of(status)
  return tonumber(status) < 500 and "invalid_request_error" or "server_error"
end

-- The error for a status that came without one: from gRPC itself, not from our code.
local function from_status(status, message)
  if message == '""' then
    message = quote("The request failed; the server did not say why.")
  end
  local code = CODES[status] or "internal_error"
  return { status = status, message = message, type = kind_of(status), code = code }
end

-- What Envoy says of a reply of its own; nil where it is the server's.
local function envoys_facts(handle, headers)
  if headers:get(REPLY .. "details") == nil then
    return nil
  end
  local facts = {
    allow = headers:get("allow"),
    unknown = notes(handle).not_found or "There is no such path.",
  }
  for _, name in ipairs(FACTS) do
    facts[name] = headers:get(REPLY .. name)
    headers:remove(REPLY .. name)
  end
  return facts
end

-- The error of a reply of Envoy's own.
local function from_envoy(handle, status, facts)
  local overloaded = facts.flags:find("UO") or facts.flags:find("OM")
  local reply = REPLIES[handle:streamInfo():routeName()]
    or REPLIES[facts.details:match("^[^{]*"):gsub("^early_", "")]
    or (status == "503" and overloaded and REPLIES.overload)
    or REPLIES[status]
    or REPLIES[status:sub(1, 1) .. "xx"]
  status = reply.status or status
  local message = quote(reply[2]:gsub("%$(%l+)", facts))
  return { status = status, message = message, type = kind_of(status), code = reply[1] }
end

local function remove_internal(headers)
  for _, name in ipairs(INTERNAL) do
    headers:remove(name)
  end
end

-- Write what was refused by Envoy, or an RPC that failed before its first message. Its trailing
-- metadata have become headers, unless the server had sent initial metadata before it failed.
local function write_error(handle)
  -- `true`: a reply without a body gets an empty one to write to. Both calls wait for the rest of
  -- the reply, and what was had from `handle` before a wait cannot be used after it.
  if handle:body(true) == nil then
    return
  end
  local trailers = handle:trailers()
  local headers, body = handle:headers(), handle:body(true)
  local function get(name)
    return headers:get(name) or (trailers and trailers:get(name))
  end
  local printed = body:getBytes(0, body:length())
  local facts = envoys_facts(handle, headers)
  local status = get("x-ovchat-status") or headers:get(":status")
  local failure
  if facts then
    facts.body = printed
    failure = from_envoy(handle, status, facts)
    status = failure.status
  else
    local message = status_message(headers, printed)
    if message == nil then
      return
    end
    failure = from_status(status, message)
  end
  local text, retry_after = get("x-ovchat-error"), get("retry-after")
  if text == nil then
    retry_after = retry_after or ((status == "429" or status == "503") and "1")
    local noted, own_status = notes(handle)
    failure.request_id = quote(noted.request_id or "")
    text, own_status = FORMATS[noted.format or "openai"](failure)
    status = own_status or status
  end
  if retry_after then
    headers:replace("retry-after", retry_after)
  end
  remove_internal(headers)
  headers:replace(":status", status)
  headers:replace("content-type", "application/json")
  -- Sets content-length too.
  body:setBytes(text)
end

-- Take away headers with bytes that no header may have, and say whether there was one. The server,
-- which gets headers as metadata of a call, would refuse it, too, but only after the body; and the
-- access log has some of them.
local function remove_invalid_headers(headers)
  local invalid = {}
  for name, value in pairs(headers) do
    if value:find("[^\t\32-\126]") and name:sub(-4) ~= "-bin" then
      table.insert(invalid, name)
    end
  end
  for _, name in ipairs(invalid) do
    if name:sub(1, 1) ~= ":" then
      headers:remove(name)
    end
  end
  return #invalid > 0
end

-- The transcoder knows no HEAD, and no slash at the end of a path. Changing either has the route
-- chosen again.
function envoy_on_request(handle)
  local headers = handle:headers()
  local noted = handle:streamInfo():dynamicMetadata()
  local invalid = remove_invalid_headers(headers)
  local path, query = headers:get(":path"):match("^([^?]*)(.*)$")
  for _, api in ipairs(APIS) do
    if path:find(api.path) or headers:get(api.header) then
      noted:set(METADATA, "format", api.format)
      noted:set(METADATA, "request_id", headers:get("x-request-id") or "")
    end
  end
  if invalid then
    handle:respond({ [":status"] = "400" }, "")
    return
  end
  if #path > 1 and path:sub(-1) == "/" then
    headers:replace(":path", path:sub(1, -2) .. query)
  end
  if headers:get(":method") == "HEAD" then
    noted:set(METADATA, "head", true)
    headers:replace(":method", "GET")
  end
end

function envoy_on_response(handle)
  local headers = handle:headers()
  if tonumber(headers:get(":status")) >= 400 then
    write_error(handle)
  else
    remove_internal(headers)
    if headers:get("content-type") == "text/event-stream" then
      headers:replace("cache-control", "no-cache")
      -- For nginx, which holds answers back otherwise.
      headers:replace("x-accel-buffering", "no")
    end
  end
  local noted = notes(handle)
  if noted.format == "anthropic" then
    -- What Anthropic's SDKs show of an answer. The server may have given it another id.
    headers = handle:headers()
    headers:replace("request-id", headers:get("x-request-id") or noted.request_id)
  end
  if noted.head then
    local body = handle:body(true)
    if body ~= nil then
      body:setBytes("")
    end
    handle:headers():remove("content-length")
  end
end
