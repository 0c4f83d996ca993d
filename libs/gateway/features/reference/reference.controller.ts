import { Controller, Headers, Inject, Res } from '@nestjs/common';
import { GATEWAY_ROUTES } from '@antiphon/contracts/reference';
import { SERVICE_IDENTITY } from '@antiphon/service-host';
import type { ServiceIdentity } from '@antiphon/service-host';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { HandleRoute } from '../route/handle-route.js';
import { asyncApiDocument } from './asyncapi-document.js';
import { openApiDocument } from './openapi-document.js';
import {
  loadRendererBundle,
  REFERENCE_SCRIPT,
  REFERENCE_PAGE_POLICY,
  referencePage,
  type RendererBundle,
} from './reference-page.js';

type Json = z.core.util.JSONType;

const SCRIPT = 'text/javascript; charset=utf-8';
const CACHE = 'private, max-age=3600';

/** Serves the API reference: the two documents, and the page that shows them. */
@Controller()
export class ReferenceController {
  private readonly version: string;
  private readonly openApiJson: Json;
  private readonly asyncApiJson: Record<string, Json>;
  private bundle: Promise<RendererBundle> | null = null;

  constructor(@Inject(SERVICE_IDENTITY) { version }: ServiceIdentity) {
    this.version = version;
    this.openApiJson = openApiDocument(version) as Json;
    this.asyncApiJson = asyncApiDocument(version) as Record<string, Json>;
  }

  @HandleRoute(GATEWAY_ROUTES.openApi)
  openApi(): Json {
    return this.openApiJson;
  }

  @HandleRoute(GATEWAY_ROUTES.asyncApi)
  asyncApi(_input: unknown, @Headers('host') host: string): Json {
    return { ...this.asyncApiJson, servers: { gateway: { host, protocol: 'ws' } } };
  }

  @HandleRoute(GATEWAY_ROUTES.docs)
  page(_input: unknown, @Res({ passthrough: true }) reply: FastifyReply): string {
    reply.headers({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': REFERENCE_PAGE_POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': CACHE,
    });
    return referencePage(this.version);
  }

  @HandleRoute(GATEWAY_ROUTES.docsScript)
  script(_input: unknown, @Res({ passthrough: true }) reply: FastifyReply): string {
    reply.headers({ 'content-type': SCRIPT, 'x-content-type-options': 'nosniff', 'cache-control': CACHE });
    return REFERENCE_SCRIPT;
  }

  @HandleRoute(GATEWAY_ROUTES.docsBundle)
  async renderer(
    _input: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Headers('accept-encoding') encodings = '',
  ): Promise<Buffer> {
    this.bundle ??= loadRendererBundle();
    const bundle = await this.bundle;
    reply.headers({ 'content-type': SCRIPT, 'x-content-type-options': 'nosniff', 'cache-control': CACHE });
    reply.header('vary', 'accept-encoding');
    if (!/\bgzip\b/.test(encodings)) return bundle.plain();
    reply.header('content-encoding', 'gzip');
    return bundle.gzip;
  }
}
