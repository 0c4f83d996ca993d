import { Controller, Inject } from '@nestjs/common';
import {
  listCredentials,
  listSecrets,
  removeCredential,
  removeSecret,
  rotateMasterKey,
  setCredential,
  setSecret,
  type CredentialView,
  type SecretView,
} from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { CREDENTIAL_ROUTES, SECRET_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { assertAdministersInstallation } from '../access/key-rights.js';

type Routes = typeof CREDENTIAL_ROUTES & typeof SECRET_ROUTES;

/** Forwards keys and secrets to the agent service, which alone encrypts, stores and reads them. */
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

  @HandleRoute(SECRET_ROUTES.listSecrets)
  listSecrets(
    _input: RouteInput<Routes['listSecrets']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<{ secrets: SecretView[] }> {
    return this.requests.request(listSecrets, { workspace });
  }

  @HandleRoute(SECRET_ROUTES.setSecret)
  setSecret(
    { params: { name }, body: { secret } }: RouteInput<Routes['setSecret']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<SecretView> {
    return this.requests.request(setSecret, { workspace, name, secret, caller });
  }

  @HandleRoute(SECRET_ROUTES.removeSecret)
  removeSecret(
    { params: { name } }: RouteInput<Routes['removeSecret']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<{ removed: boolean }> {
    return this.requests.request(removeSecret, { workspace, name, caller });
  }
}
