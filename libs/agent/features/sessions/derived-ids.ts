import { createHash } from 'node:crypto';
import { v5 } from 'uuid';
import { canonicalJson } from '@antiphon/event-store';
import type { JsonObject, JsonValue } from '@antiphon/kernel';

/** What these name follows from the log, so that a second driver makes up the same id. */
const NAMESPACE = '8b6f3c1e-5d0a-5f43-9a64-2f1f0a4d7c11';

/** The tool call at a place in an attempt's answer. */
export const callIdOf = (sessionId: string, attempt: number, index: number): string =>
  v5(`call/${attempt}/${index}`, sessionId);

/** The event stream that binds a session key is named by this id. */
export const keyIdOf = (workspace: string, sessionKey: string): string =>
  v5(`${workspace}\n${sessionKey}`, NAMESPACE);

/** A call is asked about once: its approval is named by it. */
export const approvalIdOf = (callId: string): string => v5('approval', callId);

/** SHA-256 (hex) of the RFC 8785 form. */
export const digestOf = (value: JsonObject): string =>
  createHash('sha256').update(canonicalJson(value)).digest('hex');

/** What a tool call is bound to: its name and arguments. */
export const toolDigestOf = (name: string, input: JsonValue): string => digestOf({ name, input });
