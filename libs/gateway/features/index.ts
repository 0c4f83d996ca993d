export { configureGatewayHttp } from './access/request-guard.js';
export { GatewayModule } from './gateway.module.js';
