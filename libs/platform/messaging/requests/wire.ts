import { headers as createHeaders } from '@nats-io/transport-node';
import type { MsgHdrs } from '@nats-io/transport-node';
import type { z } from 'zod';
import { AppError, ERROR_KINDS, invalid, isAppError, nestsDeeperThan, toAppError } from '@antiphon/kernel';
import type { ErrorKind } from '@antiphon/kernel';
import { HEADERS, WireError } from '@antiphon/contracts/messaging';
import { contextFrom, currentContext } from '@antiphon/observability';
import type { RequestContext } from '@antiphon/observability';

/** A reply on the wire. */
export type WireReply =
  { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: unknown };

/**
 * Maximum JSON depth of a message: above the 64 levels that edges accept, for the services' own
 * envelopes.
 */
const MAX_WIRE_DEPTH = 100;
const MAX_ISSUES = 5;

/**
 * Makes the headers of a message from the current context, or from a new one where there is none.
 */
export const contextHeaders = (service: string): MsgHdrs => {
  const context = currentContext() ?? contextFrom(service);
  const headers = createHeaders();
  headers.set(HEADERS.correlationId, context.correlationId);
  headers.set(HEADERS.causationId, context.causationId ?? context.correlationId);
  headers.set(HEADERS.traceparent, context.traceparent);
  if (context.sessionId !== undefined) headers.set(HEADERS.sessionId, context.sessionId);
  if (context.turnId !== undefined) headers.set(HEADERS.turnId, context.turnId);
  if (context.after !== undefined) headers.set(HEADERS.after, String(context.after));
  return headers;
};

/** Returns the ids of a request or reply that log lines carry. */
export const contextFieldsOf = (
  body: unknown,
): Pick<RequestContext, 'workspace' | 'sessionId' | 'turnId'> => {
  const { workspace, sessionId, turnId } = (body ?? {}) as Readonly<Record<string, unknown>>;
  return {
    ...(typeof workspace === 'string' ? { workspace } : {}),
    ...(typeof sessionId === 'string' ? { sessionId } : {}),
    ...(typeof turnId === 'string' ? { turnId } : {}),
  };
};

/** Returns the position of a header; undefined without one, or for one that is not a position. */
const positionIn = (header: string | undefined): number | undefined => {
  const position = Number(header ?? NaN);
  return Number.isSafeInteger(position) && position > 0 ? position : undefined;
};

/** Makes the context in which a service handles a message. */
export const contextFromHeaders = (service: string, headers: MsgHdrs | undefined): RequestContext =>
  contextFrom(service, {
    correlationId: headers?.get(HEADERS.correlationId),
    causationId: headers?.get(HEADERS.causationId),
    traceparent: headers?.get(HEADERS.traceparent),
    sessionId: headers?.get(HEADERS.sessionId),
    turnId: headers?.get(HEADERS.turnId),
    after: positionIn(headers?.get(HEADERS.after)),
  });

const describeIssues = (error: z.ZodError): string[] =>
  error.issues.slice(0, MAX_ISSUES).map(({ path, message }) => `${path.join('.') || '(root)'}: ${message}`);

// Strict mode: without it, broken bytes would become replacement characters instead of an error.
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads bytes as JSON of bounded depth; throws invalid with `code`. */
export const parseJson = (bytes: Uint8Array, code: string): unknown => {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch (cause) {
    throw invalid(code, 'the message is not UTF-8 text', { cause });
  }
  if (nestsDeeperThan(text, MAX_WIRE_DEPTH)) throw invalid(code, 'the message nests too deep');
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid(code, 'the message is not JSON', { cause });
  }
};

/** Parses by a schema; throws invalid with `code`, naming the first few mismatches. */
export const parseAs = <S extends z.ZodType>(schema: S, value: unknown, code: string): z.output<S> => {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = describeIssues(parsed.error);
  throw invalid(code, `the message does not match its contract: ${issues.join('; ')}`, { data: { issues } });
};

/** Encodes an error for another service. An error that is not an AppError loses its details. */
export const toWireError = (error: unknown): WireError => {
  const { kind, code, message, data } = toAppError(error);
  return { kind, code, message, data };
};

const isKind = (kind: string): kind is ErrorKind => (ERROR_KINDS as readonly string[]).includes(kind);

/** Decodes the error reply of another service, with the same kind, code and data. */
export const fromWireError = (error: unknown): AppError => {
  const { kind, code, message, data } = WireError.parse(error);
  return new AppError(isKind(kind) ? kind : 'bug', code, message, { data });
};

/** Returns true for an error whose details belong in the log only: a defect of this service. */
export const isUnexpected = (error: unknown): boolean => !isAppError(error) || error.kind === 'bug';
