import { Controller, Inject } from '@nestjs/common';
import { effectiveSettings, type AntiphonConfig, type EffectiveSetting } from '@antiphon/config';
import type { Principal } from '@antiphon/contracts/identity';
import { GATEWAY_ROUTES } from '@antiphon/contracts/reference';
import { CONFIG } from '@antiphon/service-host';
import { CurrentPrincipal } from '../access/access-guard.js';
import { HandleRoute } from '../route/handle-route.js';

/** Serves `GET /api/v1/config`, the effective configuration of the caller's workspace. */
@Controller()
export class ConfigController {
  constructor(@Inject(CONFIG) private readonly config: AntiphonConfig) {}

  @HandleRoute(GATEWAY_ROUTES.readConfig)
  read(_input: unknown, @CurrentPrincipal() { workspace }: Principal): { settings: EffectiveSetting[] } {
    return { settings: effectiveSettings(this.config, workspace) };
  }
}
