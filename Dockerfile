# One image for every process of the suite: `bookstore up`, or one subcommand each as docker-compose.yml has it.
# Builds with the classic builder too, and for whatever architecture it is built on.

# Manifests alone, so that the layer with the dependencies is built anew only when they change.
FROM rust:1.95-slim-bookworm AS manifests
WORKDIR /src
COPY . .
RUN find . -type f ! -name Cargo.toml ! -name Cargo.lock -delete \
 && for manifest in proto/Cargo.toml bench/Cargo.toml services/*/Cargo.toml; do \
      crate=$(dirname "$manifest"); mkdir -p "$crate/src"; \
      case "$crate" in \
        services/bookstore) echo 'fn main() {}' > "$crate/src/main.rs" ;; \
        *) touch "$crate/src/lib.rs" ;; \
      esac; \
      if grep -q '^\[build-dependencies\]' "$manifest"; then echo 'fn main() {}' > "$crate/build.rs"; fi; \
    done

FROM rust:1.95-slim-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /src
COPY --from=manifests /src .
RUN cargo build --release --locked -p bookstore
# What that layer built of our own crates is empty, and newer than the sources' times say. Not so what it built of others:
# sources that build scripts made are left alone, or half of the dependencies would be built again.
COPY . .
# Reports name the commit, which can't be seen from in here.
ARG BOOKSTORE_COMMIT
RUN find . -path ./target -prune -o -name '*.rs' -exec touch {} + && cargo build --release --locked -p bookstore
# The binary and the shared libraries that it names, at the paths where it looks for them.
RUN mkdir -p /image && cp target/release/bookstore /image/bookstore \
 && ldd target/release/bookstore | grep -o '/[^ ]*' | xargs -I {} cp -L --parents {} /image

FROM scratch
COPY --from=build /image /
USER 65532:65532
ENV BOOKSTORE_LISTEN=0.0.0.0
ENTRYPOINT ["/bookstore"]
CMD ["up"]
