import { createHash } from 'node:crypto';
import { Controller, Inject, Res, StreamableFile } from '@nestjs/common';
import {
  changeFiles,
  eraseFiles,
  checkFileWrite,
  listFiles,
  readFileHistory,
  statFile,
  toMarkdown,
  type FileChange,
} from '@antiphon/contracts/agent';
import type { AntiphonConfig } from '@antiphon/config';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import { CONTENT_RIGHTS, FILE_ROUTES, type RouteInput, type Upload } from '@antiphon/contracts/reference';
import { BlobStore } from '@antiphon/database';
import type { EventStore } from '@antiphon/event-store';
import { AppError, bug, exhausted, invalid, isAppError } from '@antiphon/kernel';
import { CONFIG, DATABASE_POOL, EVENT_STORE, REQUESTS } from '@antiphon/service-host';
import type { FastifyReply } from 'fastify';
import type { Pool } from 'pg';
import type { z } from 'zod';
import { CurrentPrincipal, requireFileAccess } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { ChatReader } from './chat-reader.js';

type Routes = typeof FILE_ROUTES;
type Changed = z.output<typeof changeFiles.reply>;

type WriteBody = NonNullable<RouteInput<Routes['writeFile']>['body']>;
type WriteQuery = RouteInput<Routes['writeFile']>['query'];

const bytesOfBody = ({ text, base64 }: Partial<WriteBody> = {}): Buffer =>
  base64 === undefined ? Buffer.from(text ?? '', 'utf8') : Buffer.from(base64, 'base64');

const writeOfBody = ({ expect, mode, session }: WriteBody) => ({ expect, mode, session });
const writeOfQuery = ({ expect, executable, session }: WriteQuery) => ({
  expect: expect === 'none' ? null : expect,
  mode: executable === undefined ? undefined : executable === 'true' ? (0o755 as const) : (0o644 as const),
  session,
});

/** Reads an upload up to a bound. Throws `FILE.QUOTA` with the first chunk over it. */
const readUpload = async ({ bytes }: Upload, path: string, limit: number): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of bytes) {
      size += chunk.byteLength;
      if (size > limit) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    throw invalid('GATEWAY.INVALID_BODY', 'the upload ended before its last byte', { cause });
  }
  if (size <= limit) return Buffer.concat(chunks, size);
  throw exhausted('FILE.QUOTA', `"${path}" has over ${limit} bytes, which is the most for a file`, {
    data: { quota: 'max_file_bytes', limit, value: size },
  });
};

/** Returns true if a principal may read chats, which are files too. */
const mayReadChats = (principal: Principal): boolean =>
  isPermitted(principal, CONTENT_RIGHTS.virtualFile.chat);

/** Waits for a change. Its refusal shows no content to a caller who may not read files. */
const hidingContent = async <T>(principal: Principal, change: Promise<T>): Promise<T> => {
  try {
    return await change;
  } catch (error) {
    if (isPermitted(principal, 'files:read') || !isAppError(error)) throw error;
    const { kind, code, message } = error;
    const { diff: _, ...data } = error.data;
    throw new AppError(kind, code, message, { cause: error, data });
  }
};

/** Serves the files of a workspace. Bytes go between the gateway and the blob store. */
@Controller()
export class FilesController {
  private readonly blobs: BlobStore;
  private readonly chats: ChatReader;

  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(DATABASE_POOL) pool: Pool,
    @Inject(EVENT_STORE) store: EventStore,
    @Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'files'>,
  ) {
    this.blobs = new BlobStore(pool, config.files.maxUncitedBytes);
    this.chats = new ChatReader(requests, store, pool);
  }

  @HandleRoute(FILE_ROUTES.listFiles)
  list(
    { params, query: { recursive, bin, foldersFirst, ...query } }: RouteInput<Routes['listFiles']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listFiles.reply>> {
    requireFileAccess(principal, params.id);
    const { workspace } = principal;
    const flags = {
      recursive: recursive === 'true',
      bin: bin === 'true',
      foldersFirst: foldersFirst === 'true',
    };
    return this.requests.request(listFiles, {
      workspace,
      ...query,
      ...flags,
      chats: mayReadChats(principal),
    });
  }

  @HandleRoute(FILE_ROUTES.readFile)
  async read(
    { params, query: { offset, length, ...query } }: RouteInput<Routes['readFile']>,
    @CurrentPrincipal() principal: Principal,
    @Res({ passthrough: true }) response: FastifyReply,
  ): Promise<StreamableFile> {
    requireFileAccess(principal, params.id);
    const { workspace } = principal;
    const { file, version, chat } = await this.requests.request(statFile, {
      workspace,
      path: params.path,
      ...query,
      chats: mayReadChats(principal),
    });
    const { digest } = file;
    const content =
      digest === null
        ? await this.renderChat(workspace, chat, offset, length)
        : { digest, bytes: await this.blobs.readPart(workspace, digest, offset, length ?? file.size) };
    // A file of a workspace is data: no browser runs it.
    response.header('content-security-policy', 'sandbox');
    response.header('x-content-type-options', 'nosniff');
    response.header('etag', `"${content.digest}"`);
    response.header('x-file-version', String(version));
    return new StreamableFile(content.bytes, { type: 'application/octet-stream', disposition: 'attachment' });
  }

  @HandleRoute(FILE_ROUTES.writeFile)
  async write(
    { params: { id, path }, query, body, upload }: RouteInput<Routes['writeFile']>,
    @CurrentPrincipal() principal: Principal,
    @Res({ passthrough: true }) response: FastifyReply,
  ): Promise<Changed> {
    requireFileAccess(principal, id);
    const { session, ...change } = body ? writeOfBody(body) : writeOfQuery(query);
    const { workspace } = principal;
    // Asked before a byte is stored: a refused write keeps none.
    const check = (size: number): Promise<unknown> => {
      const planned = { workspace, session, path, size, expect: change.expect };
      return hidingContent(principal, this.requests.request(checkFileWrite, planned));
    };
    if (!upload) {
      const bytes = bytesOfBody(body);
      await check(bytes.byteLength);
      const stored = await this.blobs.put(workspace, bytes);
      return this.change(principal, { op: 'write', path, ...stored, ...change }, session);
    }
    // Until all bytes are read, the connection can carry no other request.
    response.header('connection', 'close');
    await check(upload.size ?? 0);
    const bytes = await readUpload(upload, path, this.config.files.maxFileBytes);
    // The declared size may be absent or smaller.
    if (bytes.byteLength > (upload.size ?? 0)) await check(bytes.byteLength);
    response.removeHeader('connection');
    const stored = await this.blobs.put(workspace, bytes);
    return this.change(principal, { op: 'write', path, ...stored, ...change }, session);
  }

  @HandleRoute(FILE_ROUTES.deleteFile)
  delete(
    { params, query: { session, ...change } }: RouteInput<Routes['deleteFile']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Changed> {
    requireFileAccess(principal, params.id);
    return this.change(principal, { op: 'delete', path: params.path, ...change }, session);
  }

  @HandleRoute(FILE_ROUTES.changeFiles)
  changes(
    { params, body, idempotencyKey }: RouteInput<Routes['changeFiles']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Changed> {
    requireFileAccess(principal, params.id);
    const { workspace, caller: actor } = principal;
    const request = { workspace, ...body, actor, idempotencyKey };
    return hidingContent(principal, this.requests.request(changeFiles, request));
  }

  @HandleRoute(FILE_ROUTES.eraseFiles)
  erase(
    { params, body }: RouteInput<Routes['eraseFiles']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof eraseFiles.reply>> {
    requireFileAccess(principal, params.id);
    const { workspace, caller: actor } = principal;
    return this.requests.request(eraseFiles, { workspace, ...body, actor });
  }

  @HandleRoute(FILE_ROUTES.readFileHistory)
  history(
    { params, query }: RouteInput<Routes['readFileHistory']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof readFileHistory.reply>> {
    requireFileAccess(principal, params.id);
    return this.requests.request(readFileHistory, { workspace: principal.workspace, ...query });
  }

  /** Renders a chat as the file that it is among files, at the version that the tree shows. */
  private async renderChat(
    workspace: string,
    chat: z.output<typeof statFile.reply>['chat'],
    offset: number,
    length: number | undefined,
  ): Promise<{ digest: string; bytes: Buffer }> {
    if (!chat) throw bug('FILE.NO_CHAT', 'a virtual file came without its chat');
    const whole = Buffer.from(toMarkdown(await this.chats.read(workspace, chat, chat.version)));
    const digest = createHash('sha256').update(whole).digest('hex');
    return { digest, bytes: whole.subarray(offset, length === undefined ? undefined : offset + length) };
  }

  private change(principal: Principal, change: FileChange, session: string | undefined): Promise<Changed> {
    const { workspace, caller: actor } = principal;
    const request = { workspace, session, changes: [change], actor };
    return hidingContent(principal, this.requests.request(changeFiles, request));
  }
}
