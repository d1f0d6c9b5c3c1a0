// An agent with OpenAI's SDK for Node: prints the model's turns for each case as JSON.
// node agent.mjs BASE_URL < {"tools": [...], "results": {name: {city: result}}, "cases": [...]}
import { readFileSync } from "node:fs";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "unused", maxRetries: 0 });
const { tools, results, cases } = JSON.parse(readFileSync(0, "utf8"));
const asked = { model: "demo", temperature: 0 };

const run = (name, { city }) => JSON.stringify(results[name][city]);

async function choice(request, stream) {
  const { completions } = client.chat;
  const answer = stream
    ? await completions.stream(request).finalChatCompletion()
    : await completions.create(request);
  return answer.choices[0];
}

async function turns({ question, fields }, stream) {
  const messages = [{ role: "user", content: question }];
  const heard = [];
  for (let more = fields; heard.length < 5; more = {}) {
    const { message, finish_reason } = await choice({ ...asked, tools, messages, ...more }, stream);
    const calls = message.tool_calls ?? [];
    heard.push({
      finish: finish_reason,
      content: message.content,
      calls: calls.map(({ id, function: called }) => ({ id, ...called })),
    });
    if (!calls.length) break;
    messages.push(message);
    for (const { id, function: called } of calls) {
      const content = run(called.name, JSON.parse(called.arguments));
      messages.push({ role: "tool", tool_call_id: id, content });
    }
  }
  return heard;
}

// The SDK's own loop, which runs the tools itself. It forces the same calls in every turn, so
// it does not end where they are forced.
async function ran({ question, fields }, stream) {
  const runnable = tools.map(({ function: described }) => ({
    type: "function",
    function: {
      ...described,
      parse: JSON.parse,
      function: (parsed) => run(described.name, parsed),
    },
  }));
  const messages = [{ role: "user", content: question }];
  const request = { ...asked, messages, tools: runnable, ...fields, stream };
  return client.chat.completions.runTools(request).finalContent();
}

const whole = [];
for (const entry of cases) {
  whole.push({
    whole: await turns(entry, false),
    streamed: await turns(entry, true),
    ran: entry.forced ? null : [await ran(entry, false), await ran(entry, true)],
  });
}
console.log(JSON.stringify(whole));
