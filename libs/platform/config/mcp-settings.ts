import { z } from 'zod';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { bool, hint, int, list, names, show, shownText, text, workspace } from './key-hints.js';

const SERVER_NAME = /^[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const HOST = /^(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?::[1-9][0-9]{0,4})?$/;

/** A server of the operator's file. One of `command` and `url` is set (check-rules.ts). */
const McpServer = z.strictObject({
  name: show(
    hint(
      z.string().regex(SERVER_NAME),
      '1 to 24 lower-case letters, digits or dashes, beginning and ending with a letter or digit',
      'name = "files"',
    ),
  ),
  workspace: workspace().default(DEFAULT_WORKSPACE),
  command: shownText(
    'the program of a server of standard input and output',
    'command = "npx"',
    4_096,
  ).optional(),
  args: hint(
    z.array(
      text('an argument of the program', 'args = ["-y", "@modelcontextprotocol/server-memory"]', 4_096),
    ),
    'a list of the arguments of the program',
    'args = ["-y", "@modelcontextprotocol/server-memory"]',
  ).default([]),
  env: names(
    'NAMES of the environment variables that the program gets; it gets no others',
    VARIABLE,
    'env = ["PATH", "HOME"]',
  ).default([]),
  url: shownText(
    'the URL of a server of streamable HTTP, which may have a private address',
    'url = "http://127.0.0.1:8931/mcp"',
    2_048,
  ).optional(),
  token_env: hint(
    z.string().regex(VARIABLE),
    'the NAME of the environment variable with the bearer token of the URL, never the token itself',
    'token_env = "MCP_TOKEN"',
  ).optional(),
  timeout_ms: int(100, 60_000, 'maximum milliseconds for one call of a tool', 'timeout_ms = 30000').default(
    30_000,
  ),
  trust_hints: bool(
    'whether tools that claim to be idempotent or to change nothing may be called again',
    'trust_hints = false',
  ).default(false),
});

/** Servers of the Model Context Protocol, whose tools agents may have. */
export const Mcp = z.strictObject({
  private_hosts: names(
    'hosts outside of the public internet that clients may add servers of, as HOST or HOST:PORT',
    HOST,
    'private_hosts = ["127.0.0.1:8931"]',
  ).default([]),
  servers: list(McpServer, 'mcp.servers'),
});

/** Tools of other programs that are called over HTTP. */
export const Tools = z.strictObject({
  private_hosts: names(
    'hosts outside of the public internet that tools over HTTP may be called at, as HOST or HOST:PORT',
    HOST,
    'private_hosts = ["127.0.0.1:8932"]',
  ).default([]),
});
