import { Controller } from '@nestjs/common';
import { isPermitted, PERMISSIONS, type Principal } from '@antiphon/contracts/identity';
import { DASHBOARD_ROUTES, type Identity } from '@antiphon/contracts/reference';
import { isoTime } from '@antiphon/kernel';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import { HandleRoute } from '../http/handle-route.js';

type IdentityReply = z.output<typeof Identity>;

const signedInBy = ({ caller, keyId }: Principal): IdentityReply['signedInBy'] => {
  if (keyId !== null) return 'key';
  return caller === 'token' ? 'token' : 'local';
};

/** Serves what the dashboard needs to know about its user. */
@Controller()
export class DashboardController {
  @HandleRoute(DASHBOARD_ROUTES.readIdentity)
  identity(_input: unknown, @CurrentPrincipal() principal: Principal): IdentityReply {
    const { workspace, role, caller, keyId, name, agentId, expiresAt } = principal;
    return {
      ...{ workspace, role, caller, keyId, name, agentId },
      permissions: PERMISSIONS.filter((permission) => isPermitted(principal, permission)),
      expiresAt: expiresAt === null ? null : isoTime({ now: () => expiresAt }),
      signedInBy: signedInBy(principal),
    };
  }
}
