import type { Interceptor } from "@connectrpc/connect";
import { wireFormsOf } from "../wire-form.ts";

/** The last before the protocol layer: keeps what has a form of its own from being made into bytes again. */
export const wireFormInterceptor: Interceptor = (next) => async (request) => {
  const response = await next(request);
  const forms = wireFormsOf(request.contextValues);
  if (!response.stream || forms === undefined) return response;
  return { ...response, message: forms.setAside(response.message, response.method.output) };
};
