export { MeteringModule } from './metering.module.js';
