import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { natsPermissions } from '@antiphon/messaging';
import type { NatsPermissions } from '@antiphon/messaging';

/** The subjects of each service's credential (contract §6), as the services themselves need them. */
export const NATS_PERMISSIONS = Object.fromEntries(
  SERVICES.map((service) => [service, natsPermissions(service)]),
) as Readonly<Record<ServiceName, NatsPermissions>>;
