import { gunzip, gzip } from 'node:zlib';
import { promisify } from 'node:util';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};
const escapeHtml = (text: string): string => text.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] ?? char);

/**
 * Configuration of the Scalar API reference. Everything that would contact another host is off:
 * fonts, telemetry, the hosted client, the assistant and the request proxy. Test requests go to
 * this gateway only.
 */
const CONFIGURATION = {
  sources: [
    { title: 'HTTP API', slug: 'http', url: '/openapi.json', default: true },
    { title: 'WebSocket API', slug: 'websocket', url: '/asyncapi.json' },
  ],
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  externalUrls: {},
  proxyUrl: '',
  persistAuth: false,
} as const;

/**
 * Script that starts the reference on the page. It is a file, because the policy allows no inline
 * script.
 */
export const REFERENCE_SCRIPT = `Scalar.createApiReference('#reference', ${JSON.stringify(CONFIGURATION)});\n`;

/**
 * Content-Security-Policy of the page. Scripts and requests are limited to the gateway's own
 * origin, and no inline script runs. Inline styles are allowed: the renderer inserts style elements
 * and attributes.
 */
export const REFERENCE_PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Returns the page of the API reference. It loads only files of this gateway. */
export const referencePage = (version: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Antiphon ${escapeHtml(version)}: API reference</title></head><body>
<noscript>The API reference needs JavaScript. For programs: <a href="/openapi.json">OpenAPI 3.1</a>,
<a href="/asyncapi.json">AsyncAPI 3</a>.</noscript>
<div id="reference"></div>
<script src="/docs/scalar.js"></script>
<script src="/docs/reference.js"></script>
</body></html>
`;

/** Compressed script of the renderer. */
export interface RendererBundle {
  readonly gzip: Buffer;
  plain(): Promise<Buffer>;
}

/**
 * Loads the renderer from its npm package, which serves it as a Fastify plug-in. It is loaded on
 * the first request only: 4 MB would slow down the start of every gateway.
 */
export const loadRendererBundle = async (): Promise<RendererBundle> => {
  const [{ default: fastify }, { default: scalar }] = await Promise.all([
    import('fastify'),
    import('@scalar/fastify-api-reference'),
  ]);
  const server = fastify();
  await server.register(scalar, { routePrefix: '/', configuration: { content: {} } });
  const { statusCode, rawPayload } = await server.inject('/js/scalar.js');
  await server.close();
  if (statusCode !== 200) throw new Error(`the package of the API reference returned ${statusCode}`);
  const compressed = await promisify(gzip)(rawPayload);
  return { gzip: compressed, plain: () => promisify(gunzip)(compressed) };
};
