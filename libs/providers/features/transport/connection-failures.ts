import { isLoopbackHost } from '@antiphon/config';
import type { Cause } from '@antiphon/contracts/causes';
import { ModelFailure } from '@antiphon/providers-domain';
import { errors } from 'undici';
import { toOneLine } from './error-text.js';

/** Destination of a connection, as its errors name it. */
export interface ConnectionTarget {
  /** `host:port`, without credentials; empty where there is none. */
  readonly address: string;
  /** Proxy of the connection with its origin, without credentials; null for a direct one. */
  readonly proxy?: string | null;
}

/** A problem of a connection, as its cause names it. */
interface Problem {
  readonly problem: string;
  /** Code of the system or of TLS, or the status of a proxy; empty without one. */
  readonly code: string;
  /** False if another try meets the same problem. Default: true. */
  readonly retryable?: boolean;
  /** False if a proxy refused the request before the provider had it. */
  readonly reached?: false;
}

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException | undefined)?.code ?? '');

/** Codes of certificates that are not accepted, by their authority or by their time. */
const UNTRUSTED =
  /SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY_LEAF)|CERT_(?:UNTRUSTED|REVOKED|REJECTED|SIGNATURE)|INVALID_CA/;
const OUT_OF_TIME = /CERT_(?:HAS_EXPIRED|NOT_YET_VALID)/;
const NOT_TLS = /WRONG_VERSION_NUMBER|UNSUPPORTED_PROTOCOL|PACKET_LENGTH_TOO_LONG|^EPROTO$/;

const certificateProblem = (code: string): Problem | null => {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'UND_ERR_PRX_TLS')
    return { problem: 'other_name', code: '', retryable: false };
  if (OUT_OF_TIME.test(code)) return { problem: 'out_of_date', code, retryable: false };
  if (UNTRUSTED.test(code)) return { problem: 'untrusted', code, retryable: false };
  return NOT_TLS.test(code) ? { problem: 'no_tls', code, retryable: false } : null;
};

const PROXY_STATUS = /^Proxy response \((\d{3})\)/;

/** Returns the status with which a proxy refused a connection; null for any other error. */
const proxyStatus = (error: unknown): number | null => {
  if (!(error instanceof Error)) return null;
  const tunnel = PROXY_STATUS.exec(error.message)?.[1];
  if (tunnel !== undefined) return Number(tunnel);
  return error instanceof errors.InvalidArgumentError && error.message.includes('(407)') ? 407 : null;
};

const proxyProblem = (error: unknown): Problem | null => {
  const status = proxyStatus(error);
  if (status === null) return null;
  return { problem: 'proxy_refused', code: String(status), retryable: status >= 500, reached: false };
};

/** Returns the system's code for a broken connection, such as `ECONNREFUSED`, or an empty text. */
const systemCodeOf = (error: unknown): string => {
  const code = codeOf(error);
  return /^[A-Z][A-Z_]+$/.test(code) ? code : '';
};

const plainProblem = (dispatched: boolean, { address, proxy }: ConnectionTarget, error: unknown): Problem => {
  const isLocal = !proxy && isLoopbackHost(address.replace(/:\d+$/, ''));
  const problem = `${dispatched ? 'broken' : 'none'}${isLocal ? '_local' : ''}`;
  return { problem, code: systemCodeOf(error) };
};

/** No connection, or one that broke before a response began. */
export const unreachable = (
  dispatched: boolean,
  target: ConnectionTarget = { address: '' },
  cause?: unknown,
): ModelFailure => {
  const { address, proxy } = target;
  const found =
    (proxy ? proxyProblem(cause) : null) ??
    certificateProblem(codeOf(cause)) ??
    plainProblem(dispatched, target, cause);
  const { problem, code, retryable = true, reached } = found;
  const where = { address: toOneLine(address), proxy: toOneLine(proxy ?? '') };
  const why: Cause = { kind: 'provider_unreachable', problem, ...where, code };
  const details = { why, dispatched: dispatched && reached !== false, retryable };
  const options = cause === undefined ? {} : { cause };
  return new ModelFailure({ reason: 'provider_unreachable', ...details }, options);
};
