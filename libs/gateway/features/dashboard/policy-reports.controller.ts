import { Controller, Inject } from '@nestjs/common';
import { DASHBOARD_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import type { Clock } from '@antiphon/kernel';
import { defineCounter, type Logger } from '@antiphon/observability';
import { CLOCK, LOGGER } from '@antiphon/service-host';
import { HandleRoute } from '../route/handle-route.js';

const violations = defineCounter(
  'antiphon_dashboard_policy_violations',
  'Reports of browsers about content that the policy of the dashboard refused',
);

/** Reports that are logged within a minute. The others are only counted. */
const MAX_LOGGED = 30;
const WINDOW_MS = 60_000;
const MAX_TEXT = 500;

const shorten = (value: unknown): string | null =>
  typeof value === 'string' ? value.slice(0, MAX_TEXT) : null;

/** Returns the reports of a body: one in the older form, a list in the newer one. */
const reportsOf = (body: unknown): Record<string, unknown>[] => {
  const items: unknown[] = Array.isArray(body) ? body.slice(0, 20) : [body];
  return items.flatMap((item) => {
    const { 'csp-report': older, body: newer } = (item ?? {}) as Record<string, unknown>;
    const report = older ?? newer;
    return report !== null && typeof report === 'object' ? [report as Record<string, unknown>] : [];
  });
};

/** Collects what browsers report about violations of the dashboard's policy. */
@Controller()
export class PolicyReportsController {
  private windowStart = 0;
  private logged = 0;

  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  @HandleRoute(DASHBOARD_ROUTES.reportViolation)
  report({ body }: RouteInput<typeof DASHBOARD_ROUTES.reportViolation>): void {
    for (const report of reportsOf(body)) {
      violations.add(1);
      if (this.mayLog()) this.log(report);
    }
  }

  private mayLog(): boolean {
    const now = this.clock.now();
    if (now - this.windowStart >= WINDOW_MS) [this.windowStart, this.logged] = [now, 0];
    return this.logged++ < MAX_LOGGED;
  }

  private log(report: Record<string, unknown>): void {
    const directive = report['effective-directive'] ?? report['effectiveDirective'];
    const blocked = report['blocked-uri'] ?? report['blockedURL'];
    const page = report['document-uri'] ?? report['documentURL'];
    const fields = { directive: shorten(directive), blocked: shorten(blocked), page: shorten(page) };
    this.logger.warn(fields, 'dashboard policy violated');
  }
}
