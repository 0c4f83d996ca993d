import { Controller, Inject, Res } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import { PLUGIN_ROUTES, type RouteInput, type Upload } from '@antiphon/contracts/reference';
import {
  MAX_ADDED_MODULE_BYTES,
  addPlugin,
  callPlugin,
  listPlugins,
  listPluginVersions,
  permitPlugin,
  removePlugin,
  type KnownPlugin,
  type PluginVersion,
} from '@antiphon/contracts/sandbox';
import { invalid, notFound, rejected } from '@antiphon/kernel';
import { REQUESTS } from '@antiphon/service-host';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';

type Routes = typeof PLUGIN_ROUTES;

const DEFAULT_TIMEOUT_MS = 5_000;
const DEFAULT_MEMORY_MB = 16;

/** Reads a module up to its bound. Throws `PLUGIN.REJECTED` with the first chunk over it. */
const readModule = async ({ bytes, size }: Upload): Promise<Buffer> => {
  const tooLarge = () =>
    rejected('PLUGIN.REJECTED', `the module has over ${MAX_ADDED_MODULE_BYTES} bytes, which is the most`);
  if ((size ?? 0) > MAX_ADDED_MODULE_BYTES) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of bytes) {
      length += chunk.byteLength;
      if (length > MAX_ADDED_MODULE_BYTES) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    throw invalid('GATEWAY.INVALID_BODY', 'the upload ended before its last byte', { cause });
  }
  if (length > MAX_ADDED_MODULE_BYTES) throw tooLarge();
  return Buffer.concat(chunks, length);
};

const listOf = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

/** Forwards plug-ins to the sandbox service, which alone loads and runs them. */
@Controller()
export class PluginsController {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleRoute(PLUGIN_ROUTES.addPlugin)
  async add(
    { query, upload }: RouteInput<Routes['addPlugin']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
    @Res({ passthrough: true }) response: FastifyReply,
  ): Promise<KnownPlugin> {
    if (!upload)
      throw invalid('GATEWAY.INVALID_BODY', 'the body must be the module, as application/octet-stream');
    const { name, timeoutMs = DEFAULT_TIMEOUT_MS, memoryMb = DEFAULT_MEMORY_MB } = query;
    // Until all bytes are read, the connection can carry no other request.
    response.header('connection', 'close');
    const module = (await readModule(upload)).toString('base64');
    response.removeHeader('connection');
    const capabilities = listOf(query.capabilities);
    const plugin = { workspace, name, module, capabilities, timeoutMs, memoryMb, caller };
    return this.requests.request(addPlugin, plugin);
  }

  @HandleRoute(PLUGIN_ROUTES.readPlugin)
  async read(
    { params: { name } }: RouteInput<Routes['readPlugin']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<KnownPlugin> {
    const { plugins } = await this.requests.request(listPlugins, { workspace });
    const plugin = plugins.find((one) => one.name === name);
    if (!plugin) throw notFound('PLUGIN.NOT_FOUND', `the workspace has no plug-in "${name}"`);
    return plugin;
  }

  @HandleRoute(PLUGIN_ROUTES.listPluginVersions)
  versions(
    { params: { name } }: RouteInput<Routes['listPluginVersions']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<{ versions: PluginVersion[] }> {
    return this.requests.request(listPluginVersions, { workspace, name });
  }

  @HandleRoute(PLUGIN_ROUTES.permitPlugin)
  permit(
    { params: { name }, body: { allowed } }: RouteInput<Routes['permitPlugin']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<KnownPlugin> {
    return this.requests.request(permitPlugin, { workspace, name, allowed, caller });
  }

  @HandleRoute(PLUGIN_ROUTES.callPlugin)
  call(
    { params: { name }, body: { input } }: RouteInput<Routes['callPlugin']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<z.output<typeof callPlugin.reply>> {
    return this.requests.request(callPlugin, { workspace, name, input, caller });
  }

  @HandleRoute(PLUGIN_ROUTES.removePlugin)
  remove(
    { params: { name } }: RouteInput<Routes['removePlugin']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<{ removed: boolean }> {
    return this.requests.request(removePlugin, { workspace, name, caller });
  }
}
