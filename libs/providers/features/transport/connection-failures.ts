import { isLoopbackHost } from '@antiphon/config';
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

/** A problem of a connection, and what to do about it. */
interface Problem {
  /** Returns the sentence of the problem with its destination. */
  readonly text: (address: string) => string;
  readonly help: string;
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
    return {
      text: (to) => `the certificate of ${to} is for another name`,
      help: 'check base_url',
      retryable: false,
    };
  if (OUT_OF_TIME.test(code))
    return {
      text: (to) => `the certificate of ${to} is out of date (${code})`,
      help: 'check the clock and the server',
      retryable: false,
    };
  if (UNTRUSTED.test(code))
    return {
      text: (to) => `the certificate of ${to} is not trusted (${code})`,
      help: 'set ca_file of the provider to the PEM file of its authority',
      retryable: false,
    };
  return NOT_TLS.test(code)
    ? {
        text: (to) => `${to} does not speak TLS (${code})`,
        help: 'check base_url: http:// for a server without TLS',
        retryable: false,
      }
    : null;
};

const PROXY_STATUS = /^Proxy response \((\d{3})\)/;

/** Returns the status with which a proxy refused a connection; null for any other error. */
const proxyStatus = (error: unknown): number | null => {
  if (!(error instanceof Error)) return null;
  const tunnel = PROXY_STATUS.exec(error.message)?.[1];
  if (tunnel !== undefined) return Number(tunnel);
  return error instanceof errors.InvalidArgumentError && error.message.includes('(407)') ? 407 : null;
};

const proxyProblem = (proxy: string, error: unknown): Problem | null => {
  const status = proxyStatus(error);
  if (status === null) return null;
  const text = (to: string): string =>
    `the proxy ${proxy} refused the connection to ${to} with status ${status}`;
  const help =
    status === 407
      ? 'put the user and password of the proxy into its URL'
      : 'check the rules of the proxy, or add the host to NO_PROXY';
  return { text, help, retryable: status >= 500, reached: false };
};

/** Returns the system's code for a broken connection, such as ` (ECONNREFUSED)`. */
const suffixOf = (error: unknown): string => {
  const code = codeOf(error);
  return /^[A-Z][A-Z_]+$/.test(code) ? ` (${code})` : '';
};

const plainProblem = (dispatched: boolean, { address, proxy }: ConnectionTarget, error: unknown): Problem => {
  const via = proxy ? ` through the proxy ${proxy}` : '';
  const text = (to: string): string =>
    (dispatched ? `the connection to ${to}${via} broke before a response` : `no connection to ${to}${via}`) +
    suffixOf(error);
  if (proxy) return { text, help: 'check the proxy and base_url' };
  const isLocal = isLoopbackHost(address.replace(/:\d+$/, ''));
  return {
    text,
    help: isLocal
      ? 'check base_url, and that the server runs'
      : 'check base_url and the network; where only a proxy leads out, set proxy or HTTPS_PROXY',
  };
};

/** No connection, or one that broke before a response began. */
export const unreachable = (
  dispatched: boolean,
  target: ConnectionTarget = { address: '' },
  cause?: unknown,
): ModelFailure => {
  const { address, proxy } = target;
  const { text, help, retryable, reached } =
    (proxy ? proxyProblem(proxy, cause) : null) ??
    certificateProblem(codeOf(cause)) ??
    plainProblem(dispatched, target, cause);
  const message = toOneLine(`provider unreachable: ${text(address)}; ${help}`);
  const details = {
    reason: 'provider_unreachable' as const,
    message: address === '' ? 'provider unreachable' : message,
    dispatched: dispatched && reached !== false,
    retryable: retryable ?? true,
  };
  return new ModelFailure(details, cause === undefined ? {} : { cause });
};
