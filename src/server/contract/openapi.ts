/*
 * The parts of OpenAPI 3.1 that the contract is written in (https://spec.openapis.org/oas/v3.1.1).
 */

/** A pointer to a component. */
export interface ComponentRef {
  readonly $ref: string
}

/** A JSON Schema, draft 2020-12, or a pointer to one. */
export type JsonSchema = Readonly<Record<string, unknown>> | ComponentRef

/** A header field of an answer. `required`: every such answer has it. */
export interface AnswerHeader {
  readonly description: string
  readonly required?: boolean
  readonly schema: JsonSchema
}

/** An input in the path, the query or the header. */
export interface InputParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly description: string
  readonly required?: boolean
  readonly style?: 'form'
  readonly explode?: boolean
  readonly schema: JsonSchema
  readonly example?: unknown
}

/** One status with its headers and bodies. */
export interface DeclaredAnswer {
  readonly description: string
  readonly headers?: Readonly<Record<string, ComponentRef | AnswerHeader>>
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>>
}

/** Answers by status. */
export type DeclaredAnswers = Readonly<Record<string, DeclaredAnswer | ComponentRef>>

/** A scheme that opens an operation, with its scopes, which none here has; `{}`: no credential. */
export type SecurityRequirement = Readonly<Record<string, readonly string[]>>

/** What one method of a path does. */
export interface PathOperation {
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly parameters?: readonly (InputParameter | ComponentRef)[]
  readonly requestBody?: {
    readonly description: string
    readonly required: boolean
    readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>>
  }
  readonly responses: DeclaredAnswers
  readonly security?: readonly SecurityRequirement[]
}

/** The methods of a path. HEAD is left out: it is answered as GET is, without a body. */
export type PathContract = Readonly<Partial<Record<'get' | 'post' | 'options', PathOperation>>>

/** A path of the contract, and what it takes. */
export type ContractEntry = readonly [path: string, contract: PathContract]

/** An operation of the document, with its own name. */
export type NamedOperation = PathOperation & { readonly operationId: string }

/** The contract as an OpenAPI document. */
export interface OpenApiDocument {
  readonly openapi: string
  readonly info: Readonly<Record<string, unknown>>
  readonly servers: readonly { readonly url: string }[]
  readonly externalDocs: { readonly url: string; readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, NamedOperation>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>
}
