import { Controller, Inject } from '@nestjs/common';
import {
  listCredentials,
  removeCredential,
  rotateMasterKey,
  setCredential,
  type CredentialView,
} from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { CREDENTIAL_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { assertAdministersInstallation } from '../access/key-rights.js';

type Routes = typeof CREDENTIAL_ROUTES;

/** Forwards providers' keys to the agent service, which alone encrypts, stores and reads them. */
@Controller()
export class CredentialsController {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleRoute(CREDENTIAL_ROUTES.listCredentials)
  list(
    _input: RouteInput<Routes['listCredentials']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof listCredentials.reply>> {
    return this.requests.request(listCredentials, { workspace });
  }

  @HandleRoute(CREDENTIAL_ROUTES.setCredential)
  set(
    { params, body }: RouteInput<Routes['setCredential']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<CredentialView> {
    const { provider } = params;
    return this.requests.request(setCredential, { workspace, provider, secret: body.secret, caller });
  }

  @HandleRoute(CREDENTIAL_ROUTES.removeCredential)
  remove(
    { params }: RouteInput<Routes['removeCredential']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof removeCredential.reply>> {
    return this.requests.request(removeCredential, { workspace, provider: params.provider });
  }

  @HandleRoute(CREDENTIAL_ROUTES.rotateMasterKey)
  rotate(
    _input: RouteInput<Routes['rotateMasterKey']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof rotateMasterKey.reply>> {
    assertAdministersInstallation(principal, 'credentials:manage');
    return this.requests.request(rotateMasterKey, {});
  }
}
