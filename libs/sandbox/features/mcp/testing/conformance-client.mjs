import { McpConnection } from '../../dist/mcp/mcp-connection.js';

/*
 * The client as the conformance suite starts it, with the URL as the last argument. It connects,
 * lists the tools and calls each of them once, as a turn does. `npm run build` comes first.
 */
const url = process.argv.at(-1);
const limits = { timeoutMs: 20_000 };
const listener = { onToolsChanged: () => {}, onClosed: () => {}, onNoise: () => {} };
const target = { transport: 'http', url, privateHosts: [new URL(url).hostname] };
const connection = await McpConnection.open(target, listener, limits);
const { tools } = await connection.list(limits);
for (const definition of tools) {
  const properties = Object.entries(definition.inputSchema?.properties ?? {});
  const input = Object.fromEntries(properties.map(([key, { type }]) => [key, type === 'number' ? 2 : 'x']));
  await connection.callTool({ name: definition.name, input, definition }, limits);
}
await connection.close();
