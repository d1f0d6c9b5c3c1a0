// A gRPC client without proto files: what reflection tells it, a streamed answer, and that pings
// every second end no silent call. Prints it as JSON.
// GRPC_TRACE=keepalive GRPC_VERBOSITY=DEBUG node grpc.mjs ADDRESS
import grpc from "@grpc/grpc-js";
import reflecting from "grpc-js-reflection-client";

// gRPC's default ends a connection at the third that comes too early.
const PINGS = 5;
const [address] = process.argv.slice(2);
const credentials = grpc.credentials.createInsecure();
const options = {
  "grpc.keepalive_time_ms": 1000,
  "grpc.keepalive_timeout_ms": 10000,
  "grpc.keepalive_permit_without_calls": 1,
};
const reflection = new reflecting.GrpcReflection(address, credentials, options, "v1");

async function client(service) {
  const described = await reflection.getDescriptorBySymbol(service);
  const root = described.getPackageObject({ keepCase: true, enums: String, longs: Number });
  const Client = service.split(".").reduce((scope, name) => scope[name], root);
  return new Client(address, credentials, options);
}

async function story() {
  const chat = await client("ovchat.v1.ChatService");
  const messages = [{ role: "ROLE_USER", content: [{ text: "a" }] }];
  const asked = { model: "successor", messages, max_tokens: 40, temperature: 0 };
  let text = "";
  for await (const chunk of chat.StreamChatCompletion(asked)) {
    for (const { delta } of chunk.choices) text += delta.content ?? "";
  }
  return text;
}

// The library tells of pings in its log alone.
async function pinged() {
  const health = await client("grpc.health.v1.Health");
  const heard = [];
  const call = health.Watch({ service: "" });
  await new Promise((resolve, reject) => {
    let answered = 0;
    const error = (line) => {
      if (line.includes("Received ping response") && ++answered === PINGS) resolve();
    };
    grpc.setLogger({ error });
    call.on("data", ({ status }) => heard.push(status));
    call.on("error", reject);
  });
  return heard;
}

const services = await reflection.listServices();
const methods = (await reflection.listMethods("ovchat.v1.ChatService")).map(({ name }) => name);
console.log(JSON.stringify({ services, methods, story: await story(), pinged: await pinged() }));
process.exit();
