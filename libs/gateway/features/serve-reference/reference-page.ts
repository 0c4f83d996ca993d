import { HTTP_ROUTES, SOCKET_METHODS, STREAM_FRAMES } from '@antiphon/contracts/reference';
import type { HttpRoute, SocketMethod } from '@antiphon/contracts/reference';
import type { z } from 'zod';
import { jsonSchemaOf } from './json-schema.js';

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escape = (text: string): string => text.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] ?? char);
/** Text with `code` in it. */
const prose = (text: string): string => escape(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');

const schemaBlock = (title: string, schema: z.ZodType | undefined, io: 'input' | 'output'): string =>
  schema
    ? `<details><summary>${title}</summary><pre>${escape(JSON.stringify(jsonSchemaOf(schema, io), null, 2))}</pre></details>`
    : '';

const routeSection = ({ method, path, summary, query, body, reply, problems = {} }: HttpRoute): string =>
  `<section id="${escape(`${method}-${path}`)}"><h3><b>${method.toUpperCase()}</b> <code>${escape(path)}</code></h3>
<p>${prose(summary)}</p>${schemaBlock('Query', query, 'input')}${schemaBlock('Body', body, 'input')}${
    reply.media ? '' : schemaBlock('Answer', reply.schema, 'output')
  }${Object.entries(problems)
    .map(([status, why]) => `<p class="problem"><b>${status}</b> ${prose(why)}</p>`)
    .join('')}</section>`;

const methodSection = ({ name, summary, params, answer }: SocketMethod): string =>
  `<section id="${escape(name)}"><h3><code>${escape(name)}</code></h3><p>${prose(summary)}</p>
${schemaBlock('Parameters', params, 'input')}${
    answer === 'stream'
      ? '<p>Answered by <a href="#frames">stream frames</a>.</p>'
      : schemaBlock('Answer', answer, 'output')
  }</section>`;

const frameRow = ([event, { summary, data }]: [string, { summary: string; data: z.ZodType }]): string =>
  `<tr><td><code>${escape(event)}</code></td><td>${prose(summary)}</td><td>${schemaBlock('data', data, 'output')}</td></tr>`;

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.55 system-ui,sans-serif;max-width:58rem;margin:2rem auto;padding:0 1rem}
code,pre{font:0.92em ui-monospace,monospace}pre{overflow:auto;padding:.8rem;border:1px solid #8884;border-radius:6px}
section{border-top:1px solid #8884;padding:.2rem 0 .8rem}h3{margin:.8rem 0 .2rem;font-weight:500}details{margin:.3rem 0}
summary{cursor:pointer}table{border-collapse:collapse;width:100%}td{vertical-align:top;padding:.3rem .6rem .3rem 0}.problem{margin:.2rem 0}`;

/** Nothing but this page and its own style may load. */
export const REFERENCE_PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

/** The reference as one page: no script, nothing loaded from anywhere. */
export const referencePage = (version: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Antiphon ${escape(version)}: reference</title><style>${STYLE}</style></head><body>
<h1>Antiphon <small>${escape(version)}</small></h1>
<p>Made from the contracts that check every request. For machines: <a href="/openapi.json">OpenAPI 3.1</a>,
<a href="/asyncapi.json">AsyncAPI 3</a>.</p>
<h2>WebSocket <code>/ws</code></h2>
<p>Requests <code>{"id":1,"method":"…","params":{…}}</code>; answers <code>{"id":1,"result":…}</code>,
<code>{"id":1,"error":{"code":…,"message":"…"}}</code>, or stream frames.</p>
${SOCKET_METHODS.map(methodSection).join('\n')}
<h2 id="frames">Stream frames</h2>
<p><code>{"id":1,"event":"…","data":…,"offset":N}</code></p>
<table>${Object.entries(STREAM_FRAMES).map(frameRow).join('\n')}</table>
<h2>HTTP</h2><p>Errors are RFC 9457 problem documents (<code>application/problem+json</code>).</p>
${HTTP_ROUTES.map(routeSection).join('\n')}
</body></html>
`;
