import { entriesOf, tableOf, textOf } from './problem-list.js';
import type { Entry, ProblemList } from './problem-list.js';
import type { TomlData } from './toml-value.js';

type File = Readonly<Record<string, TomlData>>;

/** Lists the tables `[[mcp.servers]]` of a file. */
export const mcpServersOf = (file: File): readonly Entry[] =>
  entriesOf(tableOf(file, 'mcp'), 'servers').map(({ table, path }) => ({ table, path: ['mcp', ...path] }));

const isHttpUrl = (value: string): boolean => {
  const url = URL.parse(value);
  return (url?.protocol === 'http:' || url?.protocol === 'https:') && url.username + url.password === '';
};

/** Checks that a server has a program or a URL, and not both. */
export const checkMcpServers = (list: ProblemList, file: File): void => {
  for (const { table, path } of mcpServersOf(file)) {
    const [command, url] = [textOf(table, 'command'), textOf(table, 'url')];
    if ((command === null) === (url === null))
      list.add([...path, 'command'], {
        message: 'an MCP server has either a command or a url',
        expected:
          'the program of a server of standard input and output, or the URL of one of streamable HTTP',
        example: 'command = "npx"',
      });
    if (url !== null && !isHttpUrl(url))
      list.add([...path, 'url'], {
        message: 'not an http or https URL without credentials',
        expected: 'the URL of a server of streamable HTTP',
        example: 'url = "http://127.0.0.1:8931/mcp"',
      });
  }
};
