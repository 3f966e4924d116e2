const json = JSON as unknown as { rawJSON: (text: string) => object } // not in the ES2024 types

/** A number written exactly so in the JSON: beyond 2^53, or `9.0`, which no JavaScript number would give. */
export function exactly(text: string): object {
  return json.rawJSON(text)
}

/** A value as the bytes of its JSON. */
export function jsonBytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}
