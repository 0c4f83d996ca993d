import { createParamDecorator, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { isPermitted, type Access, type Principal } from '@antiphon/contracts/identity';
import { accessOfMethod, HTTP_ROUTES } from '@antiphon/contracts/reference';
import { bug, forbidden, unauthenticated } from '@antiphon/kernel';
import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read; null for a request without a credential. */
    principal: Principal | null;
  }
}

const ACCESS: ReadonlyMap<string, Access> = new Map(
  HTTP_ROUTES.map(({ method, path, access }) => [
    `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    access,
  ]),
);

/** Returns the rule of a request's route; undefined for a route or a path without one. */
export const accessOfRequest = ({
  method,
  routeOptions,
}: Pick<FastifyRequest, 'method' | 'routeOptions'>): Access | undefined => {
  // Fastify serves HEAD by the handler of GET.
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
  return ACCESS.get(`${verb} ${routeOptions.url ?? ''}`);
};

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

/**
 * Guards every HTTP route and every WebSocket method by its rule in the reference. One without a
 * rule is denied. Requests of other services arrive by NATS, whose permissions guard them.
 */
@Injectable()
export class AccessGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const kind = context.getType();
    if (kind === 'rpc') return true;
    if (kind === 'ws') {
      const { principal } = context.switchToWs().getClient<{ readonly principal: Principal }>();
      authorize(principal, accessOfMethod(context.switchToWs().getPattern()));
      return true;
    }
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    authorize(request.principal, accessOfRequest(request));
    return true;
  }
}

/** Injects the principal of a request into a controller's method. */
export const CurrentPrincipal = createParamDecorator((_: undefined, context: ExecutionContext): Principal => {
  const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!principal) throw bug('GATEWAY.NO_PRINCIPAL', 'this route has no principal');
  return principal;
});
