import { PayloadTooLargeException } from '@nestjs/common';
import { invalid } from '@antiphon/kernel';
import { UPLOAD_MEDIA } from '@antiphon/contracts/reference';
import type { FastifyRequest } from 'fastify';

/** Header that keeps the content type of a delivery, whose body no parser may read. */
const ORIGINAL_TYPE = 'x-antiphon-content-type';
const WEBHOOK = /^\/webhook\//;

/** Makes the body of a delivery reach its handler as bytes: signatures are those of the bytes. */
export const keepRawBody = ({ raw }: Pick<FastifyRequest, 'raw'>): void => {
  if (!WEBHOOK.test(raw.url ?? '') || raw.method !== 'POST') return;
  const { headers } = raw;
  headers[ORIGINAL_TYPE] = headers['content-type'] ?? '';
  headers['content-type'] = UPLOAD_MEDIA;
};

/** Headers that schemes and plug-ins need. No other header of a delivery leaves the gateway. */
const FORWARDED = [
  'user-agent',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
  'x-antiphon-channel-secret',
  'x-hub-signature-256',
  'x-signature-ed25519',
  'x-signature-timestamp',
  'x-slack-request-timestamp',
  'x-slack-retry-num',
  'x-slack-signature',
  'x-telegram-bot-api-secret-token',
] as const;
const MAX_HEADER = 4_096;

/** Returns the headers of a delivery that the agent service gets. */
export const forwardedHeaders = ({ headers }: Pick<FastifyRequest, 'headers'>): Record<string, string> => {
  const kept = FORWARDED.flatMap((name) => {
    const value = headers[name];
    return typeof value === 'string' && value.length <= MAX_HEADER ? [[name, value] as const] : [];
  });
  const type = headers[ORIGINAL_TYPE];
  return {
    ...Object.fromEntries(kept),
    'content-type': typeof type === 'string' ? type.slice(0, MAX_HEADER) : '',
  };
};

const tooLarge = (max: number): Error => new PayloadTooLargeException(`the body is larger than ${max} bytes`);

/** Reads the body of a delivery up to a bound. Throws an error with the status 413. */
export const readDelivery = async (
  upload: { readonly bytes: AsyncIterable<Uint8Array>; readonly size: number | undefined } | undefined,
  max: number,
): Promise<Buffer> => {
  if (!upload) return Buffer.alloc(0);
  if ((upload.size ?? 0) > max) throw tooLarge(max);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of upload.bytes) {
      length += chunk.length;
      if (length > max) break;
      chunks.push(chunk);
    }
  } catch {
    throw invalid('GATEWAY.INVALID_BODY', 'the body ended before its length');
  }
  if (length > max) throw tooLarge(max);
  return Buffer.concat(chunks);
};
