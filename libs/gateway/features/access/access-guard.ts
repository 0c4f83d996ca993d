import {
  createParamDecorator,
  Inject,
  Injectable,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import type { AntiphonConfig } from '@antiphon/config';
import type { Feature } from '@antiphon/contracts/gateway';
import type { MessageBody } from '@antiphon/contracts/agent';
import { isPermitted, type Access, type Principal } from '@antiphon/contracts/identity';
import { HTTP_ROUTES, routerPath, type HttpRoute, type SocketMethod } from '@antiphon/contracts/reference';
import { bug, forbidden, notFound, unauthenticated } from '@antiphon/kernel';
import { CONFIG } from '@antiphon/service-host';
import type { FastifyRequest } from 'fastify';
import { assertAdministersInstallation } from './key-rights.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read; null for a request without a credential. */
    principal: Principal | null;
  }
}

const ROUTES: ReadonlyMap<string, HttpRoute> = new Map(
  HTTP_ROUTES.map((route) => [`${route.method} ${routerPath(route)}`, route]),
);

/** Returns the route of a request in the reference; undefined for none. */
export const routeOf = ({
  method,
  routeOptions,
}: Pick<FastifyRequest, 'method' | 'routeOptions'>): HttpRoute | undefined => {
  // Fastify serves HEAD by the handler of GET.
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
  return ROUTES.get(`${verb} ${routeOptions.url ?? ''}`);
};

/** Key of the metadata of a handler: the method of the reference that it serves. */
export const METHOD_OF_HANDLER = Symbol('METHOD_OF_HANDLER');

/** Returns the error of a request without a valid credential. */
export const missingCredential = (): Error =>
  unauthenticated('GATEWAY.UNAUTHENTICATED', 'a valid `Authorization: Bearer` token is needed');

/**
 * Throws unless a principal satisfies a rule. Without a rule every request is denied.
 */
export const authorize = (principal: Principal | null, access: Access | undefined): void => {
  if (access === 'open') return;
  if (!principal) throw missingCredential();
  if (access === undefined) throw forbidden('GATEWAY.NO_ACCESS_RULE', 'no rule allows this request');
  if (access === 'authenticated' || isPermitted(principal, access)) return;
  throw forbidden('GATEWAY.FORBIDDEN', `this credential lacks the permission ${access}`, {
    data: { permission: access, role: principal.role },
  });
};

/** Features of the configuration. */
export type FeatureFlags = AntiphonConfig['features'];

/** Returns true for a feature that the configuration turns on, and for none. */
export const isFeatureOn = (features: FeatureFlags, feature: Feature | undefined): boolean => {
  const flags: Readonly<Record<Feature, boolean>> = {
    agent_runtime_v1: features.agentRuntimeV1,
    memory_v1: features.memoryV1,
    workers_v1: features.workersV1,
  };
  return feature === undefined || flags[feature];
};

/** Throws `GATEWAY.FEATURE_OFF` if the configuration turns a feature off. */
export const requireFeature = (features: FeatureFlags, feature: Feature | undefined): void => {
  if (isFeatureOn(features, feature)) return;
  const message = `${feature} is off in this installation: set it to true in [features] of the configuration`;
  throw notFound('GATEWAY.FEATURE_OFF', message);
};

/**
 * Guards every HTTP route and every WebSocket method by its rule and its feature in the reference.
 * One without a rule is denied. Requests of other services arrive by NATS, whose permissions guard
 * them.
 */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(@Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'features'>) {}

  canActivate(context: ExecutionContext): boolean {
    const kind = context.getType();
    if (kind === 'rpc') return true;
    if (kind === 'ws') {
      const { principal } = context.switchToWs().getData<{ readonly principal: Principal }>();
      const handler = context.getHandler();
      this.check(principal, Reflect.getMetadata(METHOD_OF_HANDLER, handler) as SocketMethod | undefined);
      return true;
    }
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const route = routeOf(request);
    this.check(request.principal, route);
    if (request.principal && route?.isForOperators === true)
      assertAdministersInstallation(request.principal, 'operations:write');
    return true;
  }

  private check(principal: Principal | null, entry: Pick<HttpRoute, 'access' | 'feature'> | undefined): void {
    authorize(principal, entry?.access);
    requireFeature(this.config.features, entry?.feature);
  }
}

/** Throws unless the workspace of a path is the caller's. Another one is not found. */
export const requireWorkspace = ({ workspace }: Principal, id: string): void => {
  if (id !== workspace) throw notFound('GATEWAY.WORKSPACE_NOT_FOUND', `there is no workspace "${id}"`);
};

/** Throws `AGENT.NOT_ALLOWED` for the key of an agent. `limit` completes "the key of an agent …". */
export const refuseAgentKey = ({ agentId }: Pick<Principal, 'agentId'>, limit: string): void => {
  if (agentId !== null) throw forbidden('AGENT.NOT_ALLOWED', `the key of agent "${agentId}" ${limit}`);
};

/**
 * Throws unless the principal may use the files of this workspace. The key of an agent is refused:
 * `write_roots` and approvals limit the agent's tools, and no routes.
 */
export const requireFileAccess = (principal: Principal, workspace: string): void => {
  requireWorkspace(principal, workspace);
  refuseAgentKey(principal, 'uses no files; the agent has its file tools');
};

/** Throws unless the principal may read the files of a message: the agent reads them for it. */
export const requireFilesOf = (principal: Principal, content: MessageBody): void => {
  if (typeof content === 'string' || content.every(({ type }) => type === 'text')) return;
  requireFileAccess(principal, principal.workspace);
  authorize(principal, 'files:read');
};

/** Injects the principal of a request into a controller's method. */
export const CurrentPrincipal = createParamDecorator((_: undefined, context: ExecutionContext): Principal => {
  const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!principal) throw bug('GATEWAY.NO_PRINCIPAL', 'this route has no principal');
  return principal;
});
