import { Controller, Inject } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import type { IssuedKey, IssuedWorkspace, KeyView } from '@antiphon/contracts/keys';
import { KEY_ROUTES, WORKSPACE_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { CurrentPrincipal } from '../access/access-guard.js';
import { HandleRoute } from '../route/handle-route.js';
import { KeyRegistry, type KeyPage } from './key-registry.js';
import { WorkspaceRegistry, type WorkspacePage } from './workspace-registry.js';

type Keys = typeof KEY_ROUTES;
type Workspaces = typeof WORKSPACE_ROUTES;

/** Serves the API keys of the caller's workspace. */
@Controller()
export class KeysController {
  constructor(@Inject(KeyRegistry) private readonly keys: KeyRegistry) {}

  @HandleRoute(KEY_ROUTES.createKey)
  create(
    { body, idempotencyKey }: RouteInput<Keys['createKey']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<IssuedKey> {
    return this.keys.create(principal, body, idempotencyKey);
  }

  @HandleRoute(KEY_ROUTES.listKeys)
  list({ query }: RouteInput<Keys['listKeys']>, @CurrentPrincipal() principal: Principal): Promise<KeyPage> {
    return this.keys.list(principal, query);
  }

  @HandleRoute(KEY_ROUTES.revokeKey)
  revoke(
    { params }: RouteInput<Keys['revokeKey']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<KeyView> {
    return this.keys.revoke(principal, params.id);
  }

  @HandleRoute(KEY_ROUTES.rotateKey)
  rotate(
    { params, body }: RouteInput<Keys['rotateKey']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<IssuedKey> {
    return this.keys.rotate(principal, params.id, body.overlapSeconds);
  }
}

/** Serves the workspaces that the caller may see. */
@Controller()
export class WorkspacesController {
  constructor(@Inject(WorkspaceRegistry) private readonly workspaces: WorkspaceRegistry) {}

  @HandleRoute(WORKSPACE_ROUTES.createWorkspace)
  create(
    { body, idempotencyKey }: RouteInput<Workspaces['createWorkspace']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<IssuedWorkspace> {
    return this.workspaces.create(principal, body.id, body.name ?? body.id, idempotencyKey);
  }

  @HandleRoute(WORKSPACE_ROUTES.listWorkspaces)
  list(
    { query }: RouteInput<Workspaces['listWorkspaces']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<WorkspacePage> {
    return this.workspaces.list(principal, query);
  }
}
