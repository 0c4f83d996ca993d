import { randomBytes } from 'node:crypto';
import { isDashboardPage } from '@antiphon/gateway-domain';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DashboardFile, DashboardFiles, Encoding } from './dashboard-files.js';
import { dashboardHeaders, NONCE_PLACEHOLDER, UNBUILT_PAGE } from './dashboard-policy.js';

const HTML = 'text/html; charset=utf-8';

const encodingOf = ({ headers }: FastifyRequest): Encoding => {
  const accepted = String(headers['accept-encoding'] ?? '');
  if (/\bbr\b/.test(accepted)) return 'br';
  return /\bgzip\b/.test(accepted) ? 'gzip' : null;
};

/** Content that needs no credential: a built file, or the page. */
export type DashboardContent =
  { readonly kind: 'file'; readonly file: DashboardFile } | { readonly kind: 'page' };

/**
 * Returns the file or the page of the dashboard that a request asks for; undefined for requests of
 * programs. Only paths without a route are the dashboard's.
 */
export const findDashboardContent = async (
  files: DashboardFiles,
  { is404, method, url, headers }: FastifyRequest,
): Promise<DashboardContent | undefined> => {
  if (!is404 || (method !== 'GET' && method !== 'HEAD')) return undefined;
  const path = url.split('?', 1)[0] ?? '';
  const file = await files.find(path);
  if (file) return { kind: 'file', file };
  const wantsPage = path === '/' || String(headers.accept ?? '').includes('text/html');
  return wantsPage && isDashboardPage(path) ? { kind: 'page' } : undefined;
};

const sendFile = async (file: DashboardFile, request: FastifyRequest, reply: FastifyReply): Promise<void> => {
  const etag = `"${file.etag}"`;
  void reply.headers({
    ...dashboardHeaders(randomBytes(16).toString('base64')),
    'content-type': file.media,
    'cache-control': file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'accept-encoding',
    etag,
  });
  if (request.headers['if-none-match'] === etag) return void reply.status(304).send();
  const encoding = encodingOf(request);
  const bytes = await file.encoded(encoding);
  if (encoding !== null && bytes !== file.bytes) void reply.header('content-encoding', encoding);
  void reply.send(bytes);
};

const sendPage = async (files: DashboardFiles, reply: FastifyReply): Promise<void> => {
  const nonce = randomBytes(16).toString('base64');
  const page = await files.page();
  void reply
    .status(page === undefined ? 503 : 200)
    .headers({ ...dashboardHeaders(nonce), 'content-type': HTML, 'cache-control': 'no-store' })
    .send((page ?? UNBUILT_PAGE).replaceAll(NONCE_PLACEHOLDER, nonce));
};

/** Sends a file, or the page with a nonce of its own. */
export const sendDashboardContent = (
  files: DashboardFiles,
  content: DashboardContent,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> =>
  content.kind === 'file' ? sendFile(content.file, request, reply) : sendPage(files, reply);
