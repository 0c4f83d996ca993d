import { Controller, Inject, Req, Res } from '@nestjs/common';
import { isPermitted, PERMISSIONS, type Principal } from '@antiphon/contracts/identity';
import { DASHBOARD_ROUTES, type Identity, type RouteInput } from '@antiphon/contracts/reference';
import {
  conflict,
  exhausted,
  forbidden,
  isoTime,
  rejected,
  unauthenticated,
  type Clock,
} from '@antiphon/kernel';
import { CLOCK } from '@antiphon/service-host';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { Authenticator } from '../access/authenticator.js';
import { addressGroup } from '../access/client-address.js';
import type { Identities } from '../access/identities.port.js';
import { CSRF_HEADER, judgeHeaders } from '../access/session-cookie.js';
import { AUTHENTICATOR, IDENTITIES } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { createKeyId, createSecret } from '../access/api-key-text.js';
import { KeyRegistry } from '../identity/key-registry.js';
import { sessionKeyName, sessionKeyPrefix, type SessionKind } from '../identity/session-keys.js';

type Routes = typeof DASHBOARD_ROUTES;

/** Life of a session, and of a one-time link, ms. */
const LIFE_MS: Readonly<Record<SessionKind, number>> = { session: 12 * 3_600_000, link: 5 * 60_000 };

/** Sessions of one credential that are valid at the same time. The oldest ends for a further one. */
const MAX_SESSIONS = 20;

const isoAt = (time: number): string => isoTime({ now: () => time });
/** Returns how a person knows a caller. */
const nameOf = ({ name, caller }: Principal): string => (name === null ? caller : `"${name}"`);

const refused = (): Error =>
  unauthenticated('GATEWAY.SIGN_IN_REFUSED', 'the key or the code is not valid, or the code was used before');

/** Serves the sign-in of the dashboard, and tells it about its user. */
@Controller()
export class DashboardController {
  constructor(
    @Inject(AUTHENTICATOR) private readonly authenticator: Authenticator,
    @Inject(IDENTITIES) private readonly identities: Identities,
    @Inject(KeyRegistry) private readonly keys: KeyRegistry,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @HandleRoute(DASHBOARD_ROUTES.readIdentity)
  identity(_input: unknown, @CurrentPrincipal() principal: Principal): Identity {
    const { workspace, role, caller, keyId, name, agentId, expiresAt } = principal;
    return {
      ...{ workspace, role, caller, keyId, name, agentId },
      permissions: PERMISSIONS.filter((permission) => isPermitted(principal, permission)),
      expiresAt: expiresAt === null ? null : isoAt(expiresAt),
      signedInBy: this.signedInBy(principal),
    };
  }

  @HandleRoute(DASHBOARD_ROUTES.signIn)
  async signIn(
    { body }: RouteInput<Routes['signIn']>,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Identity> {
    this.requireOwnRequest(request);
    const signer =
      'key' in body ? await this.signerOf(body.key, request) : await this.exchange(body, request);
    return this.begin(signer, request, reply);
  }

  @HandleRoute(DASHBOARD_ROUTES.extendSession)
  async extendSession(
    _input: unknown,
    @CurrentPrincipal() principal: Principal,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Identity> {
    if (!this.identities.isSession(principal) || principal.keyId === null)
      throw rejected('GATEWAY.NO_SESSION', 'only a session of the dashboard can be extended');
    this.authenticator.signIns.charge(principal.caller);
    // One session becomes one: a copy of the old cookie does not outlive it.
    if (!(await this.keys.consume(principal, principal.keyId))) throw refused();
    return this.begin(principal, request, reply);
  }

  @HandleRoute(DASHBOARD_ROUTES.signOut)
  async signOut(
    _input: unknown,
    @CurrentPrincipal() principal: Principal,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<void> {
    if (this.identities.isSession(principal) && principal.keyId !== null)
      await this.keys.consume(principal, principal.keyId);
    void reply.header('set-cookie', this.authenticator.cookie.render(request.headers, '', 0));
  }

  @HandleRoute(DASHBOARD_ROUTES.createLink)
  async createLink(
    _input: unknown,
    @CurrentPrincipal() principal: Principal,
  ): Promise<{ path: string; expiresAt: string }> {
    if (principal.caller === 'local' || this.identities.isSession(principal))
      throw rejected('GATEWAY.NO_LINK', 'only an API key or the configured token creates links');
    this.authenticator.signIns.charge(`link/${principal.caller}`);
    const { token, expiresAt } = await this.issue(principal, 'link');
    return { path: `/#sign-in=${token}`, expiresAt: isoAt(expiresAt) };
  }

  /** Begins a session with the rights of a credential, in a cookie of the reply. */
  private async begin(signer: Principal, request: FastifyRequest, reply: FastifyReply): Promise<Identity> {
    const { token, expiresAt } = await this.issue(signer, 'session');
    await this.keys.endOldest(signer, sessionKeyPrefix(signer.caller), MAX_SESSIONS);
    const session = await this.identities.authenticateSession(token, 'session');
    if (!session) throw refused();
    const seconds = Math.floor((expiresAt - this.clock.now()) / 1_000);
    void reply.header('set-cookie', this.authenticator.cookie.render(request.headers, token, seconds));
    void reply.header('cache-control', 'no-store');
    return this.identity(undefined, session);
  }

  private signedInBy(principal: Principal): Identity['signedInBy'] {
    if (this.identities.isSession(principal)) return 'session';
    if (principal.keyId !== null) return 'key';
    return principal.caller === 'token' ? 'token' : 'local';
  }

  /** Refuses a sign-in that another page sent: its owner would see what the user then does. */
  private requireOwnRequest({ headers }: FastifyRequest): void {
    const verdict = judgeHeaders(headers, this.authenticator.local !== null);
    const site = headers['sec-fetch-site'];
    if (!verdict.allowed) throw forbidden('GATEWAY.ORIGIN_REFUSED', verdict.reason);
    if (headers[CSRF_HEADER] !== undefined && (site === undefined || site === 'same-origin')) return;
    throw forbidden('GATEWAY.ORIGIN_REFUSED', `a sign-in needs the header ${CSRF_HEADER} and its own origin`);
  }

  private async signerOf(key: string, { headers, socket }: FastifyRequest): Promise<Principal> {
    const address = this.authenticator.clientAddress(socket.remoteAddress, headers);
    const { principal, retryAfterSeconds } = await this.authenticator.authenticate(key, address);
    if (retryAfterSeconds > 0)
      throw exhausted('GATEWAY.TOO_MANY_FAILURES', 'too many failed attempts', {
        data: { retryAfterSeconds },
      });
    if (!principal || principal.caller === 'local') throw refused();
    this.chargeSignIn(principal, address);
    return principal;
  }

  /** Charges a sign-in to its address, to its credential and to the rate of its key. */
  private chargeSignIn(signer: Principal, address: string): void {
    this.authenticator.limits.chargeRequest(signer);
    this.authenticator.signIns.charge(`address/${addressGroup(address)}`, signer.caller);
  }

  /** Returns the credential that created a link, once. */
  private async exchange(
    { code, replace = false }: { readonly code: string; readonly replace?: boolean | undefined },
    request: FastifyRequest,
  ): Promise<Principal> {
    const link = await this.identities.authenticateSession(code, 'link');
    if (!link || link.keyId === null) return this.signerOf(code, request);
    if (!replace) await this.requireNoOtherSession(link, request);
    this.chargeSignIn(link, this.authenticator.clientAddress(request.socket.remoteAddress, request.headers));
    if (!(await this.keys.consume(link, link.keyId))) throw refused();
    return link;
  }

  /** Refuses a link that would put a browser into another workspace, or under another name. */
  private async requireNoOtherSession(link: Principal, { headers }: FastifyRequest): Promise<void> {
    const cookie = this.authenticator.cookie.read(headers);
    const own = cookie === undefined ? null : await this.identities.authenticateSession(cookie, 'session');
    const current = own ?? this.authenticator.local;
    // A local program needs no session, and every link of its own workspace is made on its machine.
    const isSame = current?.workspace === link.workspace && (own === null || own.caller === link.caller);
    if (!current || isSame) return;
    const message =
      `this browser works in the workspace "${current.workspace}" as ${nameOf(current)}. ` +
      `The link signs in to the workspace "${link.workspace}" as ${nameOf(link)}`;
    const data = { workspace: current.workspace, linkWorkspace: link.workspace };
    throw conflict('GATEWAY.SESSION_EXISTS', message, { data });
  }

  private async issue(signer: Principal, kind: SessionKind): Promise<{ token: string; expiresAt: number }> {
    const { workspace, role, scopes, agentId, caller } = signer;
    const keyId = caller.startsWith('key/') ? caller.slice('key/'.length) : null;
    const latest = this.clock.now() + LIFE_MS[kind];
    // The life of a link or a session does not limit that of the next session.
    const limit = this.identities.isSession(signer) ? this.identities.signerEndOf(signer) : signer.expiresAt;
    const expiresAt = Math.min(latest, limit ?? latest);
    const version = this.identities.versionOf(signer);
    const name = sessionKeyName({ kind, keyId, version });
    const key = { keyId: createKeyId(), workspace, name, role, scopes, agentId, expiresAt };
    const { token } = await this.keys.issue(key, createSecret(), caller);
    return { token: token ?? '', expiresAt };
  }
}
