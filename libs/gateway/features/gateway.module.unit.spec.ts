import type { FactoryProvider } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import { HeavyRequests } from './admission/heavy-requests.js';
import { GatewayModule } from './gateway.module.js';

const providers = Reflect.getMetadata('providers', GatewayModule) as FactoryProvider<HeavyRequests>[];

describe('the gateway', () => {
  it('lets a heavy request wait for its turn as long as `heavy_wait_s` says', async () => {
    const provider = providers.find(({ provide }) => provide === HeavyRequests);
    const heavy = (await provider?.useFactory({ gateway: { heavyWaitMs: 5 } })) as HeavyRequests;
    const caller = { workspace: 'acme', caller: 'key/a' };
    await heavy.enter(caller);
    const leave = await heavy.enter(caller);
    const started = performance.now();
    await expect(heavy.enter(caller)).rejects.toMatchObject({ code: 'GATEWAY.BUSY' });
    expect(performance.now() - started).toBeLessThan(9_000);
    leave();
    await heavy.enter(caller);
  });
});
