import { z } from 'zod';
import { event } from '../log/stored-event.js';
import { RemoteToolDeclaration, ToolEndpoint } from './remote-tools.js';

/** Caller of a request, as `Principal.caller` names it. */
const Caller = z.string().max(200);

/** A program registered a tool, or a changed declaration of it: the next version. */
export const RemoteToolRegistered = event('RemoteToolRegistered', {
  ...RemoteToolDeclaration.shape,
  /** Absent for a tool that programs serve over a socket. */
  endpoint: ToolEndpoint.optional(),
  version: z.int().positive(),
  /** Digest of the declaration, hex. */
  digest: z.string().max(64),
  registeredBy: Caller,
  registeredAt: z.iso.datetime(),
});

/** A tool was removed. A later registration is the next version. */
export const RemoteToolRemoved = event('RemoteToolRemoved', {
  name: z.string().max(64),
  removedBy: Caller,
  removedAt: z.iso.datetime(),
});

/** Every event of the stream `plugin-remote` of a workspace. */
export const RemoteToolEvent = z.discriminatedUnion('type', [RemoteToolRegistered, RemoteToolRemoved]);
export type RemoteToolEvent = z.infer<typeof RemoteToolEvent>;

/** Event stream of the remote tools of a workspace. */
export const REMOTE_TOOLS_STREAM = 'plugin-remote';
