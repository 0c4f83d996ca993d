import {
  Inject,
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  type OnModuleDestroy,
} from '@nestjs/common';
import { Position } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import { METHODS, type SocketMethodName } from '@antiphon/contracts/reference';
import { requirePosition, type EventStore } from '@antiphon/event-store';
import { invalid, isAppError } from '@antiphon/kernel';
import { runWithContextFields } from '@antiphon/observability';
import { EVENT_STORE } from '@antiphon/service-host';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { catchError, concatMap, type Observable } from 'rxjs';
import { routeOf } from '../access/access-guard.js';
import { RecentWrites } from './recent-writes.js';

const runAfter = (after: number, next: CallHandler): Observable<unknown> =>
  runWithContextFields({ after }, () => next.handle());

/** Runs a read after a position, or as far as the services are when that takes too long. */
const tryAfter = (after: number, next: CallHandler): Observable<unknown> =>
  runAfter(after, next).pipe(
    catchError((error: unknown) => {
      if (isAppError(error) && error.code === 'LOG.PROJECTION_BEHIND') return next.handle();
      throw error;
    }),
  );

/**
 * Takes `?after=` out of a query, for the routes that do not read it themselves. Every read of
 * the API has it, so it is not in their schemas.
 */
const takeAfter = (request: FastifyRequest): number | undefined => {
  const query = request.query as Record<string, unknown>;
  const route = routeOf(request);
  if (!('after' in query) || (route?.query && 'after' in route.query.shape)) return undefined;
  const parsed = Position.safeParse(query['after']);
  if (!parsed.success) throw invalid('GATEWAY.INVALID_QUERY', 'after: it must be a position of the log');
  delete query['after'];
  return parsed.data;
};

/**
 * Lets a read see the writes that the same caller made before it, at any gateway, and those up to
 * `?after=`. The services wait until their projections have them.
 */
@Injectable()
export class ReadAfterWriteInterceptor implements NestInterceptor, OnModuleDestroy {
  constructor(
    @Inject(RecentWrites) private readonly writes: RecentWrites,
    @Inject(EVENT_STORE) private readonly store: EventStore,
  ) {}

  onModuleDestroy(): void {
    this.writes.close();
  }

  intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    // A request of another service is no read of a caller.
    if (context.getType() === 'rpc') return Promise.resolve(next.handle());
    return context.getType() === 'http' ? this.http(context, next) : this.socket(context, next);
  }

  private async http(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const { principal, method } = request;
    if (!principal) return next.handle();
    if (method === 'GET' || method === 'HEAD') {
      const after = takeAfter(request);
      if (after === undefined) return this.read(principal, next);
      return runAfter(requirePosition(after, await this.store.headPosition()), next);
    }
    const write = this.writes.begin(principal);
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    return next.handle().pipe(
      concatMap(async (result) => {
        const position = await this.writes.end(principal, write);
        if (position !== undefined && !reply.sent && !reply.hasHeader('antiphon-position'))
          void reply.header('antiphon-position', String(position));
        return result;
      }),
    );
  }

  private async socket(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const ws = context.switchToWs();
    const { principal } = ws.getData<{ readonly principal: Principal }>();
    const { access, answer } = METHODS[ws.getPattern() as SocketMethodName];
    if (access.endsWith(':write')) this.writes.begin(principal);
    const isList = access.endsWith(':read') && typeof answer !== 'string';
    return isList ? this.read(principal, next) : next.handle();
  }

  private async read(principal: Principal, next: CallHandler): Promise<Observable<unknown>> {
    const after = await this.writes.positionFor(principal);
    return after === undefined ? next.handle() : tryAfter(after, next);
  }
}
