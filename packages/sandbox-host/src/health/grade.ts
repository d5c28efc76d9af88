export type HealthGrade = "healthy" | "degraded" | "unhealthy";

export function worst(grades: readonly HealthGrade[]): HealthGrade {
  if (grades.includes("unhealthy")) return "unhealthy";
  return grades.includes("degraded") ? "degraded" : "healthy";
}
