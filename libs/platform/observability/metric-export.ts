import { OTLPMetricExporter as JsonExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPMetricExporter as ProtobufExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import type { IMetricReader } from '@opentelemetry/sdk-metrics';
import type { OtlpTarget } from './telemetry-env.js';

/** Sends all metrics of the process now and then. */
export const createMetricReader = ({ url, protocol }: OtlpTarget, intervalMs: number): IMetricReader =>
  new PeriodicExportingMetricReader({
    exporter: protocol === 'http/json' ? new JsonExporter({ url }) : new ProtobufExporter({ url }),
    exportIntervalMillis: intervalMs,
    exportTimeoutMillis: Math.min(intervalMs, 30_000),
  });
