export { GatewayModule } from './gateway.module.js';
export { configureGatewayHttp } from './authenticate/configure-http.js';
