export { configureGatewayHttp } from './gateway-http.js';
export { GatewayModule } from './gateway.module.js';
