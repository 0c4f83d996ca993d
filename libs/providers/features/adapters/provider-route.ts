import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chooseProxy, parseProxy, secretsOfProxy } from '@antiphon/config';
import type { ProviderConfig } from '@antiphon/config';
import type { Cause } from '@antiphon/contracts/causes';
import { baseUrlOf, type Environment } from './provider-settings.js';
import type { Route } from '../transport/connections.js';

const PEM =
  /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]+-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g;

/** Problem of a route with the setting that has it, as the cause of a failed call names it. */
type RouteProblem = Pick<Extract<Cause, { kind: 'provider_route' }>, 'problem' | 'setting' | 'detail'>;

/** Reads the certificates of `ca_file`. Returns why it cannot be used instead. */
const readCertificates = (path: string): { ca: string } | RouteProblem => {
  const setting = `ca_file ${path}`;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const detail = String((error as NodeJS.ErrnoException).code);
    return { problem: 'file_unreadable', setting, detail };
  }
  const found = text.match(PEM) ?? [];
  try {
    for (const pem of found) new X509Certificate(pem);
  } catch {
    return { problem: 'certificate_unreadable', setting, detail: '' };
  }
  return found.length > 0 ? { ca: found.join('\n') } : { problem: 'no_certificate', setting, detail: '' };
};

/** A provider's route, and why no call can take it. */
export interface ProviderRoute extends Omit<Route, 'connectMs'> {
  readonly problem: RouteProblem | null;
}

/** Returns the way to a provider: its proxy and the certificates that it accepts. */
export const routeOf = (provider: ProviderConfig, env: Environment): ProviderRoute => {
  const proxy = chooseProxy(provider, new URL(baseUrlOf(provider)), env);
  const read = provider.caFile === undefined ? { ca: null } : readCertificates(provider.caFile);
  const unusable =
    proxy.kind === 'invalid' ? { problem: 'proxy_invalid', setting: proxy.from, detail: '' } : null;
  return 'problem' in read ? { proxy, ca: null, problem: read } : { proxy, ca: read.ca, problem: unusable };
};

const PROXY_VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];

/** Returns users and passwords of proxies, which no message may show. */
export const proxySecrets = (providers: readonly ProviderConfig[], env: Environment): string[] => {
  const texts = [...PROXY_VARIABLES.map((name) => env[name]), ...providers.map(({ proxy }) => proxy)];
  return texts.flatMap((text) => {
    const url = text === undefined ? null : parseProxy(text.trim());
    return url === null ? [] : secretsOfProxy(url);
  });
};
