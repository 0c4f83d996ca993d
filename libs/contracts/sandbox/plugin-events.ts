import { z } from 'zod';
import { event } from '../log/stored-event.js';

const change = {
  /** Name of the plug-in, which is that of its tool. */
  name: z.string().max(64),
  /** Principal that caused the change. */
  actor: z.string().min(1).max(200),
  at: z.iso.datetime(),
};
const definition = {
  version: z.int().positive(),
  /** SHA-256 of the module's file, hex. The bytes are in no event. */
  digest: z.string().max(64),
  bytes: z.int().nonnegative(),
  capabilities: z.array(z.string().max(300)).max(50),
  timeoutMs: z.int().positive(),
  memoryMb: z.int().positive(),
};

/** A workspace added a plug-in. Agents that name its tool may call it from here on. */
export const PluginAdded = event('PluginAdded', { ...change, ...definition });
/** The module, its capabilities or its limits are others. Calls in progress end with theirs. */
export const PluginVersionAdded = event('PluginVersionAdded', { ...change, ...definition });
/** Its tool does not exist any more. The values of its stores are deleted in the same commit. */
export const PluginRemoved = event('PluginRemoved', change);
/** The workspace may call the plug-in again, after it was denied. */
export const PluginAllowed = event('PluginAllowed', change);
/** The workspace may not call the plug-in, which may be one of the configuration. */
export const PluginDenied = event('PluginDenied', change);

/** Every event of the stream of a workspace's plug-ins. */
export const PluginEvent = z.discriminatedUnion('type', [
  PluginAdded,
  PluginVersionAdded,
  PluginRemoved,
  PluginAllowed,
  PluginDenied,
]);
export type PluginEvent = z.infer<typeof PluginEvent>;

/** Event stream of the plug-ins of a workspace. */
export const PLUGINS_STREAM = 'plugin-modules';
