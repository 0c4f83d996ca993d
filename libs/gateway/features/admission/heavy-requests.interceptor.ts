import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import {
  Inject,
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import { costOf, isHeavy, METHOD_COSTS, type SocketMethodName } from '@antiphon/contracts/reference';
import { observeGauges } from '@antiphon/observability';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { finalize, type Observable } from 'rxjs';
import { routeOf } from '../access/access-guard.js';
import { HeavyRequests } from './heavy-requests.js';

/**
 * Time after its handler for which a response still counts as heavy, ms. A client that reads slowly
 * holds no connection to the database, and must not take the places of others.
 */
const SENDING_MS = 30_000;

/** Returns true for a heavy HTTP request. The client of an upload sets its pace, so it is small. */
const isHeavyHttp = (request: FastifyRequest): boolean => {
  const route = routeOf(request);
  if (!route || request.body instanceof Readable) return false;
  return isHeavy(costOf(route), request.query);
};

/**
 * Ends a heavy request once its handler and its response have ended. The handler of a client that
 * is gone may still read the database.
 */
const endWithResponse = (response: ServerResponse, leave: () => void): (() => void) => {
  let isHandled = false;
  let sending: NodeJS.Timeout | undefined;
  response.once('close', () => {
    clearTimeout(sending);
    if (isHandled) leave();
  });
  return () => {
    isHandled = true;
    if (response.closed) leave();
    else sending = setTimeout(leave, SENDING_MS).unref();
  };
};

/** Admits heavy requests of HTTP routes and socket methods, after the access guard. */
@Injectable()
export class HeavyRequestsInterceptor implements NestInterceptor, OnApplicationBootstrap, OnModuleDestroy {
  private unobserve: () => void = () => undefined;

  constructor(@Inject(HeavyRequests) private readonly heavy: HeavyRequests) {}

  onApplicationBootstrap(): void {
    this.unobserve = observeGauges(
      {
        antiphon_heavy_requests_running: 'Heavy requests that this gateway runs',
        antiphon_heavy_requests_waiting: 'Heavy requests that wait for a place in this gateway',
      },
      (report) => {
        const { running, waiting } = this.heavy.counts;
        report('antiphon_heavy_requests_running', running);
        report('antiphon_heavy_requests_waiting', waiting);
      },
    );
  }

  onModuleDestroy(): void {
    this.unobserve();
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    if (context.getType() === 'http') return this.admitHttp(context, next);
    if (context.getType() !== 'ws') return next.handle();
    const ws = context.switchToWs();
    if (METHOD_COSTS[ws.getPattern() as SocketMethodName] !== 'heavy') return this.runSmall(next);
    const { principal } = ws.getData<{ readonly principal: Principal }>();
    const leave = await this.heavy.enter(principal);
    return next.handle().pipe(finalize(leave));
  }

  private runSmall(next: CallHandler): Observable<unknown> {
    const end = this.heavy.beginSmall();
    return next.handle().pipe(finalize(end));
  }

  private async admitHttp(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    if (!request.principal || !isHeavyHttp(request)) return this.runSmall(next);
    const { raw } = context.switchToHttp().getResponse<FastifyReply>();
    const gone = new AbortController();
    const abort = (): void => gone.abort();
    raw.once('close', abort);
    const leave = await this.heavy.enter(request.principal, { signal: gone.signal });
    raw.off('close', abort);
    const onHandled = endWithResponse(raw, leave);
    return next.handle().pipe(finalize(onHandled));
  }
}
