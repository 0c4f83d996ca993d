// Host functions that the development kit does not declare. Function decorators are a feature of
// AssemblyScript.
@external("extism:host/env", "http_request")
export declare function http_request(request: u64, body: u64): u64;
@external("extism:host/env", "http_status_code")
export declare function http_status_code(): i32;
@external("extism:host/env", "length")
export declare function length(block: u64): u64;
