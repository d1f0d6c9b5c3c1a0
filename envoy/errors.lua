-- The last hand on every REST response: error bodies, HEAD, and the headers of a stream. And the
-- first on a request: HEAD, and a slash at the end of the path.
--
-- Stands before grpc_json_transcoder in the filter chain, so it sees requests before they become
-- gRPC and responses after they have become HTTP again. Native gRPC has its own route, where
-- this filter is turned off. Nothing here reads a body it does not replace: a stream that has
-- begun passes as it is produced.

local METADATA = "ovchat"

-- The bodies of errors that do not come from the server's code, by the name that a route has in
-- its metadata: `filter_metadata: { envoy.filters.http.lua: { errors: openai } }`. `message` is a
-- JSON string literal.
local FORMATS = {
  openai = function(failure)
    return string.format(
      '{"error":{"message":%s,"type":"%s","param":null,"code":"%s"}}',
      failure.message, failure.type, failure.code
    )
  end,
}
-- That of routes without a name, and of Envoy's own replies before this filter sees them.
local DEFAULT = FORMATS.openai

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

-- How the errors of this route look.
local function route_format(handle)
  return FORMATS[handle:metadata():get("errors")] or DEFAULT
end

-- The error for a status that came without one: from gRPC itself, not from our code.
local function from_status(status, message)
  if message == '""' then
    message = quote("The request failed; the server did not say why.")
  end
  return {
    status = status,
    message = message,
    type = tonumber(status) < 500 and "invalid_request_error" or "server_error",
    code = CODES[status] or "internal_error",
  }
end

-- The error in a reply of Envoy's own: an object in the default format, its keys in order.
local function from_envoy(status, body)
  local code = body:match('^{"error":{"code":"([%w_]+)"')
  local kind = body:match('"type":"([%w_]+)"}}%s*$')
  local _, start = body:find('"message":"', 1, true)
  local message = start and literal(body, start)
  if code and kind and message then
    return { status = status, message = message, type = kind, code = code }
  end
end

local function remove_internal(headers)
  for _, name in ipairs(INTERNAL) do
    headers:remove(name)
  end
end

-- An RPC that failed before its first message. Its trailing metadata have become headers, unless
-- the server had sent initial metadata before it failed.
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
  local message = status_message(headers, printed)
  local format = route_format(handle)
  if message == nil then
    local failure = format ~= DEFAULT and from_envoy(headers:get(":status"), printed)
    if failure then
      body:setBytes(format(failure))
    end
    return
  end
  local status = get("x-ovchat-status") or headers:get(":status")
  local text = get("x-ovchat-error") or format(from_status(status, message))
  local retry_after = get("retry-after") or ((status == "429" or status == "503") and "1")
  if retry_after then
    headers:replace("retry-after", retry_after)
  end
  remove_internal(headers)
  headers:replace(":status", status)
  headers:replace("content-type", "application/json")
  -- Sets content-length too.
  body:setBytes(text)
end

-- The transcoder knows no HEAD, and no slash at the end of a path. Changing either has the route
-- chosen again.
function envoy_on_request(handle)
  local headers = handle:headers()
  local path, query = headers:get(":path"):match("^([^?]*)(.*)$")
  if #path > 1 and path:sub(-1) == "/" then
    headers:replace(":path", path:sub(1, -2) .. query)
  end
  if headers:get(":method") == "HEAD" then
    handle:streamInfo():dynamicMetadata():set(METADATA, "head", true)
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
  local metadata = handle:streamInfo():dynamicMetadata():get(METADATA)
  if metadata ~= nil and metadata["head"] then
    local body = handle:body(true)
    if body ~= nil then
      body:setBytes("")
    end
    handle:headers():remove("content-length")
  end
end
