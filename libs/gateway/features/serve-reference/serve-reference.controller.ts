import { Controller, Get, Header, Inject } from '@nestjs/common';
import type { JsonObject } from '@antiphon/kernel';
import { SERVICE_IDENTITY } from '@antiphon/service-host';
import type { ServiceIdentity } from '@antiphon/service-host';
import { asyncApiDocument } from './asyncapi-document.js';
import { openApiDocument } from './openapi-document.js';
import { REFERENCE_PAGE_POLICY, referencePage } from './reference-page.js';

/** `GET /openapi.json`, `/asyncapi.json`, `/docs`: made once, when the gateway starts. */
@Controller()
export class ServeReferenceController {
  private readonly openApiJson: JsonObject;
  private readonly asyncApiJson: JsonObject;
  private readonly html: string;

  constructor(@Inject(SERVICE_IDENTITY) { version }: ServiceIdentity) {
    this.openApiJson = openApiDocument(version);
    this.asyncApiJson = asyncApiDocument(version);
    this.html = referencePage(version);
  }

  @Get('openapi.json')
  openApi(): JsonObject {
    return this.openApiJson;
  }

  @Get('asyncapi.json')
  asyncApi(): JsonObject {
    return this.asyncApiJson;
  }

  @Get('docs')
  @Header('content-type', 'text/html; charset=utf-8')
  @Header('content-security-policy', REFERENCE_PAGE_POLICY)
  @Header('x-content-type-options', 'nosniff')
  page(): string {
    return this.html;
  }
}
