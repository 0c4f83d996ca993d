import type { Provider } from '@nestjs/common';
import { workspaceConfig, type AntiphonConfig } from '@antiphon/config';
import type { EventStore } from '@antiphon/event-store';
import { createRouter, type Router } from '@antiphon/gateway-domain';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { CONFIG, EVENT_STORE, LOGGER, REQUESTS } from '@antiphon/service-host';
import { AgentAccess } from '../access/agent-access.js';
import type { FrameLog } from '../frames/frame-log.js';
import type { SessionFeeds } from '../frames/session-feeds.js';
import { FRAME_LOG, SESSION_FEEDS, SESSION_METHODS } from '../gateway.ports.js';
import type { RpcMethod } from '../sockets/rpc-method.js';
import { sessionResume } from './resume-session.js';
import { chatSend, sessionSend } from './send-message.js';
import { sessionMethods, type RouterOf } from './session-methods.js';
import { SubmitTurns } from './submit-turns.js';

/** Returns the router of each workspace: its own bindings, and its first agent by default. */
const createRouters = (config: AntiphonConfig): RouterOf => {
  const routers = new WeakMap<AntiphonConfig, Router>();
  return (workspace) => {
    const own = workspaceConfig(config, workspace);
    const router = routers.get(own) ?? createRouter(own.bindings, own.agents[0]?.id ?? '');
    routers.set(own, router);
    return router;
  };
};

/** Provides the methods that send messages, and start, read and resume sessions. */
export const sessionMethodsProvider: Provider = {
  provide: SESSION_METHODS,
  inject: [REQUESTS, SubmitTurns, SESSION_FEEDS, FRAME_LOG, CONFIG, LOGGER, EVENT_STORE, AgentAccess],
  useFactory: (
    requests: RequestClient,
    turns: SubmitTurns,
    feeds: SessionFeeds,
    frameLog: FrameLog,
    config: AntiphonConfig,
    logger: Logger,
    store: EventStore,
    access: AgentAccess,
  ): RpcMethod[] => {
    const routerOf = createRouters(config);
    const sending = { requests, turns, feeds, routerOf, logger };
    return [
      chatSend(sending),
      sessionSend(sending),
      ...sessionMethods({ requests, routerOf }),
      sessionResume({
        ...{ feeds, frameLog, logger },
        requireSession: (principal, sessionId) => access.requireSession(principal, store, sessionId),
      }),
    ];
  },
};
