/** Counts up when the same records make other findings here. Where the same VEX rules out others, the schema of the database counts up. */
export const FINDINGS_RULES = 14
