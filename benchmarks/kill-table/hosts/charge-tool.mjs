// The tool of the agent, for the peers: it acts on a target that is not idempotent.
export const CHARGE = {
  name: 'charge',
  description: 'Charges an account. Each call charges it once more.',
  parameters: { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] },
};
export const CHARGE_TOOLS = [{ type: 'function', function: CHARGE }];

export const charge = async (url) => {
  const response = await fetch(url);
  return response.text();
};

/** Returns the message of a tool call's result. */
export const runCall = async ({ id, function: { arguments: input } }) => ({
  role: 'tool',
  tool_call_id: id,
  content: await charge(JSON.parse(input).url),
});
